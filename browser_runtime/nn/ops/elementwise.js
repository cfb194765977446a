// Ops on single elements.

/** @type {Record<string, import("./index.js").Backward>} */
export const backward = {
  // Every activation so far declares gradFrom: "output": its derivative is a function of y alone, so x need not be kept.
  activation(graph, op, gradient, { want }) {
    const dx = want(op.inputs.x);
    if (dx) graph.op("activation_grad", { dy: gradient, y: op.outputs.y }, { dx }, { fn: op.attrs.fn });
  },

  add(_graph, op, gradient, { pass }) {
    pass(op.inputs.a, gradient);
    pass(op.inputs.b, gradient);
  },
};
