// activations.js: activations and their derivatives in float64, from the input x or from the output y.

/**
 * @typedef {object} Activation
 * @property {(x: number) => number} value
 * @property {(x: number) => number} slopeFromInput dy/dx
 * @property {(y: number) => number} slopeFromOutput the same as a function of y; NaN where y is
 */

/** @type {Record<string, Activation>} */
export const activations = {
  linear: { value: (x) => x, slopeFromInput: () => 1, slopeFromOutput: () => 1 },
  // NaN stays NaN, and its gradient passes: hiding it would let a broken run look healthy. The slope at 0 is 0, as PyTorch's.
  relu: {
    value: (x) => (x < 0 ? 0 : x),
    slopeFromInput: (x) => (x <= 0 ? 0 : 1),
    slopeFromOutput: (y) => (y <= 0 ? 0 : 1),
  },
  sigmoid: {
    value: sigmoid,
    slopeFromInput: (x) => sigmoid(x) * sigmoid(-x), // not s (1 - s): 1 - s is 0 from x = 37 on
    slopeFromOutput: (y) => y * (1 - y),
  },
  tanh: {
    value: Math.tanh,
    slopeFromInput: (x) => 1 / Math.cosh(x) ** 2,
    slopeFromOutput: (y) => 1 - y * y,
  },
};

/** @param {number} x @returns {number} 1 / (1 + exp(-x)) without overflow, relatively exact on both sides */
export function sigmoid(x) {
  const e = Math.exp(-Math.abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

/** @param {number} x @returns {number} log(1 + exp(x)) without overflow: exp(x) exceeds float64 above 709 */
export function softplus(x) {
  return (x < 0 ? 0 : x) + Math.log1p(Math.exp(-Math.abs(x)));
}
