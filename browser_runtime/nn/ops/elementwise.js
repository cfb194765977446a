// Ops on single elements.

/** @type {Record<string, import("./index.js").Backward>} */
export const backward = {
  add(_graph, op, gradient, { pass }) {
    pass(op.inputs.a, gradient);
    pass(op.inputs.b, gradient);
  },

  multiply(graph, op, gradient, { want }) {
    const { a, b } = op.inputs;
    const da = want(a);
    if (da) graph.op("multiply", { a: gradient, b }, { y: da });
    const db = want(b);
    if (db) graph.op("multiply", { a: gradient, b: a }, { y: db });
  },
};
