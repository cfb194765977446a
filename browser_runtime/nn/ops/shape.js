// Ops that move elements; the gradient moves them back.

/** @param {import("../graph.js").Graph} graph @param {string} tensor */
const channelsOf = (graph, tensor) => graph.tensor(tensor).shape.at(-1);

/** @type {Record<string, import("./index.js").Backward>} */
export const backward = {
  reshape(graph, op, gradient, { want }) {
    const y = want(op.inputs.x);
    if (y) graph.op("reshape", { x: gradient }, { y });
  },

  shift2d(graph, op, gradient, { want }) {
    const y = want(op.inputs.x);
    const { input, output, offset } = op.attrs;
    if (y) graph.op("shift2d", { x: gradient }, { y }, { input: output, output: input, offset: offset.map((/** @type {number} */ lines) => -lines) });
  },

  upsample2d(graph, op, gradient, { want }) {
    const dx = want(op.inputs.x);
    if (dx) graph.op("upsample2d_grad", { dy: gradient }, { dx }, op.attrs);
  },

  concat(graph, op, gradient, { want }) {
    const da = want(op.inputs.a);
    if (da) graph.op("slice_channels", { x: gradient }, { y: da }, { first: 0, count: channelsOf(graph, op.inputs.a) });
    const db = want(op.inputs.b);
    if (db) graph.op("slice_channels", { x: gradient }, { y: db }, { first: op.attrs.split, count: channelsOf(graph, op.inputs.b) });
  },
};
