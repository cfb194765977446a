// Matrix products: y = x w + b.

/** @type {Record<string, import("./index.js").Backward>} */
export const backward = {
  affine(graph, op, gradient, { want }) {
    const { x, w } = op.inputs;
    const dx = want(x);
    if (dx) graph.op("affine_grad_input", { dy: gradient, w }, { dx });
    // Last, since the update of w follows it and dx must see the old weights.
    const dw = want(w);
    if (dw) graph.op("affine_grad_weights", { x, dy: gradient }, { dw });
  },
};
