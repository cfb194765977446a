// Pooling.

/** @type {Record<string, import("./index.js").Backward>} */
export const backward = {
  // The gradient goes to the first largest element of each window.
  max_pool2d(graph, op, gradient, { want }) {
    const dx = want(op.inputs.x);
    if (dx) graph.op("max_pool2d_grad", { x: op.inputs.x, y: op.outputs.y, dy: gradient }, { dx }, op.attrs);
  },

  // Each element of a window takes the same share.
  avg_pool2d(graph, op, gradient, { want }) {
    const dx = want(op.inputs.x);
    if (dx) graph.op("avg_pool2d_grad", { dy: gradient }, { dx }, op.attrs);
  },
};
