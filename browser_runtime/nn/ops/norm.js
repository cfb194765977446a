// Normalization. Statistics have no gradient of their own: that of what they normalize has it in it.

/** @type {Record<string, import("./index.js").Backward>} */
export const backward = {
  sample_norm(graph, op, gradient, { want }) {
    const { x, s, w } = op.inputs;
    const dx = want(x);
    if (dx) {
      const sums = graph.add({ name: `d(${s})`, kind: "gradient", shape: graph.tensor(s).shape, batched: true });
      graph.op("sample_norm_grad_sums", { x, s, dy: gradient, w }, { sums }, op.attrs);
      graph.op("sample_norm_grad_input", { x, s, sums, dy: gradient, w }, { dx }, op.attrs);
    }
    // Last, since the update of w follows it and dx must see the old one.
    const dw = want(w);
    if (dw) graph.op("sample_norm_grad_weights", { x, s, dy: gradient }, { dw }, op.attrs);
  },

  // The gradients of gamma and beta are the very sums that dx needs. Of a frozen layer, statistics are numbers like gamma.
  batch_norm(graph, op, gradient, { want }) {
    const { x, mean, variance, w } = op.inputs;
    const dx = want(x);
    if (!op.attrs.live) {
      if (dx) graph.op("batch_norm_grad_scale", { variance, dy: gradient, w }, { dx }, op.attrs);
      return;
    }
    const dw = /** @type {string} */ (want(w)); // a layer that normalizes by the batch is one that is trained
    graph.op("batch_norm_grad_weights", { x, mean, variance, dy: gradient }, { dw }, op.attrs);
    if (dx) graph.op("batch_norm_grad_input", { x, mean, variance, dy: gradient, w, dw }, { dx }, op.attrs);
  },
};
