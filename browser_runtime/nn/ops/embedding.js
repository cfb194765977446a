// Embeddings.

/** @type {Record<string, import("./index.js").Backward>} */
export const backward = {
  // Numbers have no gradient.
  embedding(graph, op, gradient, { want }) {
    const dw = want(op.inputs.w);
    if (dw) graph.op("embedding_grad_weights", { x: op.inputs.x, dy: gradient }, { dw }, op.attrs);
  },
};
