// Optimizers: what each keeps, and its scalars step by step. Formulas are PyTorch's: reference/optimizers.js; kernel: shaders/lib/optimizer.glsl.

/**
 * @typedef {object} OptimizerType
 * @property {(o: any) => string[]} states the tensors that it keeps beside a parameter
 * @property {(o: any) => string} rule its name in the kernel
 * @property {(o: any, t: number) => number[]} constants up to four numbers of step t (counted from 1) that the rule names
 * @property {(o: any, t: number) => number} [rate] what the learning rate is multiplied with at step t; 1 where it is left out
 * @property {boolean} [decoupled] `weight_decay` shrinks the weights themselves, and is no part of the gradient
 */

/** @type {Record<string, OptimizerType>} */
export const optimizers = {
  sgd: {
    states: (o) => (o.momentum > 0 ? ["velocity"] : []),
    rule: (o) => (o.momentum > 0 ? (o.nesterov ? "NESTEROV" : "MOMENTUM") : "SGD"),
    constants: (o) => [o.momentum],
  },
  adam: {
    states: () => ["m", "v"],
    rule: () => "ADAM",
    constants: adamConstants,
    rate: (o, t) => 1 / (1 - o.beta1 ** t),
  },
  adamw: {
    states: () => ["m", "v"],
    rule: () => "ADAM",
    constants: adamConstants,
    rate: (o, t) => 1 / (1 - o.beta1 ** t),
    decoupled: true,
  },
  rmsprop: {
    states: (o) => (o.momentum > 0 ? ["v", "velocity"] : ["v"]),
    rule: (o) => (o.momentum > 0 ? "RMSPROP_MOMENTUM" : "RMSPROP"),
    constants: (o) => [1 - o.alpha, o.eps, o.momentum],
  },
  adagrad: { states: () => ["sum"], rule: () => "ADAGRAD", constants: (o) => [o.eps] },
  adadelta: { states: () => ["v", "delta"], rule: () => "ADADELTA", constants: (o) => [1 - o.rho, o.eps] },
  lion: { states: () => ["m"], rule: () => "LION", constants: (o) => [1 - o.beta1, 1 - o.beta2], decoupled: true },
};

/** w -= (lr / bias1) * m / (sqrt(v) / sqrt(bias2) + eps) @param {any} o @param {number} t */
function adamConstants(o, t) {
  return [1 - o.beta1, 1 - o.beta2, 1 / Math.sqrt(1 - o.beta2 ** t), o.eps];
}

/** What is added to the gradient of weights: PyTorch's SGD calls l2 weight_decay. @param {any} o @returns {{l1: number, l2: number, decay: number}} */
export function penalties(o) {
  const { l1 = 0, l2 = 0, weight_decay = 0 } = o;
  return optimizers[o.type].decoupled ? { l1, l2, decay: weight_decay } : { l1, l2: l2 + weight_decay, decay: 0 };
}

/**
 * The scalars of a step as shaders/lib/optimizer.glsl names them: the rate, four constants, decay, l1, l2, limits of the gradient. All is computed in
 * float64 here and rounded once.
 * @param {any} spec @param {number} lr of this step @param {number} t counted from 1 @param {Float32Array} out
 * @param {boolean} [keep] whether gradients of the step's earlier batches count
 */
export function writeScalars({ optimizer, train }, lr, t, out, keep = false) {
  const { constants, rate } = optimizers[optimizer.type];
  const { l1, l2, decay } = penalties(optimizer);
  out[0] = lr * (rate?.(optimizer, t) ?? 1);
  constants(optimizer, t).forEach((value, i) => (out[1 + i] = value));
  out[5] = lr * decay;
  out[6] = l1;
  out[7] = l2;
  out[8] = train.clip?.value ?? 0;
  out[9] = train.clip?.global_norm ?? 0;
  out[10] = Number(keep);
}
