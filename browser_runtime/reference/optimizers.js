// optimizers.js: one update of a parameter in float64, by PyTorch's formulas. Inputs stay as they are.
import { map, zip } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */
/** @typedef {Record<string, Tensor>} States zeros before the first step, shaped as the parameter */

/**
 * w -= lr g
 * @param {Tensor} w @param {Tensor} g @param {{lr: number}} options
 * @returns {Tensor}
 */
export function sgd(w, g, { lr }) {
  return zip(w, g, (weight, gradient) => weight - lr * gradient);
}

/**
 * v = momentum v + g; w -= lr v
 * @param {Tensor} w @param {Tensor} g @param {Tensor} velocity
 * @param {{lr: number, momentum: number}} options
 * @returns {{w: Tensor, velocity: Tensor}}
 */
export function sgdMomentum(w, g, velocity, { lr, momentum }) {
  const next = zip(velocity, g, (v, gradient) => momentum * v + gradient);
  return { w: sgd(w, next, { lr }), velocity: next };
}

/**
 * m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
 * w -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 * @param {Tensor} w @param {Tensor} g @param {Tensor} m @param {Tensor} v
 * @param {{lr: number, beta1: number, beta2: number, eps: number, t: number}} options t counts steps from 1
 * @returns {{w: Tensor, m: Tensor, v: Tensor}}
 */
export function adam(w, g, m, v, { lr, beta1, beta2, eps, t }) {
  const nextM = zip(m, g, (mean, gradient) => beta1 * mean + (1 - beta1) * gradient);
  const nextV = zip(v, g, (mean, gradient) => beta2 * mean + (1 - beta2) * gradient * gradient);
  const rate = lr / (1 - beta1 ** t);
  const correction = Math.sqrt(1 - beta2 ** t);
  const step = zip(nextM, nextV, (mean, square) => (rate * mean) / (Math.sqrt(square) / correction + eps));
  return { w: zip(w, step, (weight, change) => weight - change), m: nextM, v: nextV };
}

/**
 * One update as the job spec names it.
 * @param {Tensor} w @param {Tensor} g @param {States} states what initialStates gave, or the last update
 * @param {any} optimizer the spec's: type "sgd" with momentum (0: none), or "adam" with beta1, beta2, eps
 * @param {{lr: number, t: number}} step its learning rate, and its number counted from 1
 * @returns {States & {w: Tensor}}
 */
export function update(w, g, states, optimizer, { lr, t }) {
  if (optimizer.type === "adam") {
    const { beta1, beta2, eps } = optimizer;
    return adam(w, g, states.m, states.v, { lr, beta1, beta2, eps, t });
  }
  if (optimizer.type !== "sgd") throw new RangeError(`no optimizer ${optimizer.type}; use sgd or adam`);
  const momentum = optimizer.momentum ?? 0;
  return momentum > 0 ? sgdMomentum(w, g, states.velocity, { lr, momentum }) : { w: sgd(w, g, { lr }) };
}

/** @param {Tensor} w @param {any} optimizer the spec's @returns {States} */
export function initialStates(w, optimizer) {
  const zeros = () => map(w, () => 0);
  if (optimizer.type === "adam") return { m: zeros(), v: zeros() };
  return (optimizer.momentum ?? 0) > 0 ? { velocity: zeros() } : {};
}
