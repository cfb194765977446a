// Dropout: the gradient meets the same mask, which is drawn again and never stored.

/** @type {Record<string, import("./index.js").Backward>} */
export const backward = {
  dropout(graph, op, gradient, { want }) {
    const y = want(op.inputs.x);
    if (y) graph.op("dropout", { x: gradient }, { y }, op.attrs);
  },
};
