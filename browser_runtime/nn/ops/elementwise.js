// Ops on single elements.

/** @type {Record<string, import("./index.js").Backward>} */
export const backward = {
  add(_graph, op, gradient, { pass }) {
    pass(op.inputs.a, gradient);
    pass(op.inputs.b, gradient);
  },
};
