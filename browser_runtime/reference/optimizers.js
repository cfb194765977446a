// optimizers.js: one update of a parameter in float64, by PyTorch's formulas (Lion: the paper's). Inputs stay as they are.
import { map, tensor } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */
/** @typedef {Record<string, Tensor>} States zeros before the first step, shaped as the parameter */

/**
 * One number's update: what is subtracted from the weight, and the states after it.
 * @typedef {(g: number, states: any, o: any, step: {lr: number, t: number}) => Record<string, any>} Rule
 */

/** @type {Record<string, {states: (o: any) => string[], rule: Rule}>} */
const optimizers = {
  // v = momentum v + g; w -= lr v, with Nesterov w -= lr (g + momentum v)
  sgd: {
    states: ({ momentum = 0 }) => (momentum > 0 ? ["velocity"] : []),
    rule(g, states, { momentum = 0, nesterov = false }, { lr }) {
      if (momentum === 0) return { change: lr * g };
      const velocity = momentum * states.velocity + g;
      return { velocity, change: lr * (nesterov ? g + momentum * velocity : velocity) };
    },
  },
  adam: { states: () => ["m", "v"], rule: adam },
  adamw: { states: () => ["m", "v"], rule: adam },
  // v = alpha v + (1 - alpha) g^2; w -= lr g / (sqrt(v) + eps), with momentum by way of a velocity
  rmsprop: {
    states: ({ momentum = 0 }) => (momentum > 0 ? ["v", "velocity"] : ["v"]),
    rule(g, states, { alpha, eps, momentum = 0 }, { lr }) {
      const v = alpha * states.v + (1 - alpha) * g * g;
      const scaled = g / (Math.sqrt(v) + eps);
      if (momentum === 0) return { v, change: lr * scaled };
      const velocity = momentum * states.velocity + scaled;
      return { v, velocity, change: lr * velocity };
    },
  },
  // sum += g^2; w -= lr g / (sqrt(sum) + eps)
  adagrad: {
    states: () => ["sum"],
    rule(g, states, { eps }, { lr }) {
      const sum = states.sum + g * g;
      return { sum, change: (lr * g) / (Math.sqrt(sum) + eps) };
    },
  },
  // v = rho v + (1 - rho) g^2; d = g sqrt(delta + eps) / sqrt(v + eps); delta = rho delta + (1 - rho) d^2; w -= lr d
  adadelta: {
    states: () => ["v", "delta"],
    rule(g, states, { rho, eps }, { lr }) {
      const v = rho * states.v + (1 - rho) * g * g;
      const d = (Math.sqrt(states.delta + eps) / Math.sqrt(v + eps)) * g;
      return { v, delta: rho * states.delta + (1 - rho) * d * d, change: lr * d };
    },
  },
  // w -= lr sign(beta1 m + (1 - beta1) g); m = beta2 m + (1 - beta2) g. NaN has no sign and stays NaN.
  lion: {
    states: () => ["m"],
    rule: (g, { m }, { beta1, beta2 }, { lr }) => ({ m: beta2 * m + (1 - beta2) * g, change: lr * Math.sign(beta1 * m + (1 - beta1) * g) }),
  },
};

/**
 * m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 * @type {Rule}
 */
function adam(g, states, { beta1, beta2, eps }, { lr, t }) {
  const m = beta1 * states.m + (1 - beta1) * g;
  const v = beta2 * states.v + (1 - beta2) * g * g;
  return { m, v, change: ((lr / (1 - beta1 ** t)) * m) / (Math.sqrt(v) / Math.sqrt(1 - beta2 ** t) + eps) };
}

/** Of these, weight_decay shrinks the weights themselves; elsewhere it is another name of l2, as in PyTorch's SGD. */
const DECOUPLED = ["adamw", "lion"];

/**
 * One update as the job spec names it. First the gradient is limited, then the slope of the penalties is added: l2/2 w^2 and l1 |w|. Decoupled
 * decay shrinks w by lr weight_decay besides.
 * @param {Tensor} w @param {Tensor} g
 * @param {States} states what initialStates gave, or the last update
 * @param {any} optimizer the spec's
 * @param {{lr: number, t: number, clip?: {value?: number|null}|null, factor?: number, decay?: boolean}} step its learning rate, its number
 *   counted from 1, limits of the gradient, what clipping its norm multiplies it with; whether penalties and decay count: not for biases
 * @returns {States & {w: Tensor}}
 */
export function update(w, g, states, optimizer, { lr, t, clip = null, factor = 1, decay = true }) {
  const { rule } = named(optimizer);
  const { l1 = 0, l2 = 0, weight_decay = 0 } = decay ? optimizer : {};
  const decoupled = DECOUPLED.includes(optimizer.type);
  const limit = clip?.value ?? Infinity;
  const names = Object.keys(states);
  const out = Object.fromEntries(["w", ...names].map((name) => [name, tensor(w.shape)]));
  w.data.forEach((weight, i) => {
    const limited = g.data[i] > limit ? limit : g.data[i] < -limit ? -limit : g.data[i]; // NaN stays
    const slope = limited * factor + (l2 + (decoupled ? 0 : weight_decay)) * weight + l1 * Math.sign(weight);
    const { change, ...next } = rule(slope, Object.fromEntries(names.map((name) => [name, states[name].data[i]])), optimizer, { lr, t });
    out.w.data[i] = weight * (decoupled ? 1 - lr * weight_decay : 1) - change;
    for (const name of names) out[name].data[i] = next[name];
  });
  return /** @type {States & {w: Tensor}} */ (out);
}

/**
 * The norm of a whole gradient, and what limits it: PyTorch's clip_grad_norm_.
 * @param {Tensor[]} gradients @param {number|null} [limit]
 * @returns {Tensor} [2]: min(1, limit / (norm + 1e-6)), 1 without a limit; and the norm
 */
export function gradNorm(gradients, limit = null) {
  const norm = Math.sqrt(gradients.reduce((sum, { data }) => data.reduce((part, g) => part + g * g, sum), 0));
  const factor = limit === null ? 1 : limit / (norm + 1e-6);
  return tensor([2], [factor > 1 ? 1 : factor, norm]); // NaN stays
}

/** @param {Tensor} w @param {any} optimizer the spec's @returns {States} */
export function initialStates(w, optimizer) {
  return Object.fromEntries(named(optimizer).states(optimizer).map((name) => [name, map(w, () => 0)]));
}

/** @param {any} optimizer */
function named({ type }) {
  if (!Object.hasOwn(optimizers, type)) throw new RangeError(`no optimizer ${type}; use one of ${Object.keys(optimizers).join(", ")}`);
  return optimizers[type];
}
