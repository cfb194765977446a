// The primitive ops and their gradients, as graph builders. Formulas stand in reference/, kernels in shaders/.

/** @import { Graph, Op } from "./graph.js" */

/**
 * Emits the ops of the backward pass of one op.
 * @callback Backward
 * @param {Graph} graph
 * @param {Op} op
 * @param {string} gradient tensor name of the gradient with respect to the op's output
 * @param {(input: string) => string|null} want name of the gradient tensor to write for an input, null where nobody needs it
 */

/** @type {Record<string, Backward>} */
export const backward = {
  // y = x @ w + b
  affine(graph, op, gradient, want) {
    const { x, w } = op.inputs;
    const dx = want(x);
    if (dx) graph.op("affine_grad_input", { dy: gradient, w }, { dx });
    // Last, since the update of w follows it and dx must see the old weights.
    const dw = want(w);
    if (dw) graph.op("affine_grad_weights", { x, dy: gradient }, { dw });
  },

  conv2d(graph, op, gradient, want) {
    const { x, w } = op.inputs;
    const dx = want(x);
    if (dx) graph.op("conv2d_grad_input", { dy: gradient, w }, { dx }, op.attrs);
    const dw = want(w);
    if (dw) graph.op("conv2d_grad_weights", { x, dy: gradient }, { dw }, op.attrs);
  },

  // The gradient goes to the first largest element of each window.
  max_pool2d(graph, op, gradient, want) {
    const dx = want(op.inputs.x);
    if (dx) graph.op("max_pool2d_grad", { x: op.inputs.x, y: op.outputs.y, dy: gradient }, { dx }, op.attrs);
  },

  // Every activation so far declares gradFrom: "output": its derivative is a function of y alone, so x need not be kept.
  activation(graph, op, gradient, want) {
    const dx = want(op.inputs.x);
    if (dx) graph.op("activation_grad", { dy: gradient, y: op.outputs.y }, { dx }, { fn: op.attrs.fn });
  },
};

/**
 * Losses: `pointwise` ones treat each output alone, the others need the whole row.
 * @type {Record<string, {pointwise: boolean}>}
 */
export const losses = {
  bce: { pointwise: true },
  mse: { pointwise: true },
  softmax_cross_entropy: { pointwise: false },
};

/**
 * Optimizers: the state tensors that each keeps beside a parameter, and the five scalars of step t (counted from 1), which reach the
 * kernels through uniforms. Formulas are PyTorch's; what depends on t alone is computed in float64 here and rounded once.
 * @type {Record<string, {states(o: any): string[], scalars(o: any, lr: number, t: number, out: Float32Array): void}>}
 */
export const optimizers = {
  sgd: {
    states: (o) => (o.momentum > 0 ? ["velocity"] : []),
    scalars(o, lr, _t, out) {
      out[0] = lr;
      out[1] = o.momentum;
    },
  },
  // w -= (lr / bias1) * m / (sqrt(v) / sqrt(bias2) + eps)
  adam: {
    states: () => ["m", "v"],
    scalars(o, lr, t, out) {
      out[0] = lr / (1 - o.beta1 ** t);
      out[1] = 1 - o.beta1;
      out[2] = 1 - o.beta2;
      out[3] = 1 / Math.sqrt(1 - o.beta2 ** t);
      out[4] = o.eps;
    },
  },
};
