// Convolutions.

/** @type {Record<string, import("./index.js").Backward>} */
export const backward = {
  conv2d(graph, op, gradient, { want }) {
    const { w, ...read } = op.inputs;
    const { x } = read;
    const dx = want(x);
    if (dx) graph.op("conv2d_grad_input", { dy: gradient, w }, { dx }, op.attrs);
    const dw = want(w);
    if (dw) graph.op("conv2d_grad_weights", { ...read, dy: gradient }, { dw }, op.attrs);
  },
};
