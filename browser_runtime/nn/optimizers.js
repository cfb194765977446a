// Optimizers: what each keeps, and its scalars step by step. Formulas are PyTorch's: reference/optimizers.js; kernel: shaders/lib/optimizer.glsl.

/**
 * The state tensors that each keeps beside a parameter, and up to eight scalars of step t, the learning rate first (counted from 1), which reach the
 * kernels through uniforms. What depends on t alone is computed in float64 here and rounded once.
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
