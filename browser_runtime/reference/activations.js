// activations.js: activations and their derivatives in float64, from the input x or from the output y.

/**
 * @typedef {object} Activation
 * @property {(x: number) => number} value
 * @property {(x: number) => number} slopeFromInput dy/dx
 * @property {(y: number) => number} [slopeFromOutput] the same as a function of y, where one is; NaN where y is
 */

const LEAKY_SLOPE = 0.01;

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
  leaky_relu: {
    value: (x) => (x < 0 ? LEAKY_SLOPE * x : x),
    slopeFromInput: (x) => (x <= 0 ? LEAKY_SLOPE : 1),
    slopeFromOutput: (y) => (y <= 0 ? LEAKY_SLOPE : 1),
  },
  elu: {
    value: (x) => (x < 0 ? Math.expm1(x) : x),
    slopeFromInput: (x) => (x < 0 ? Math.exp(x) : 1),
    slopeFromOutput: (y) => (y < 0 ? y + 1 : 1),
  },
  gelu: {
    value: (x) => x * normalCdf(x),
    slopeFromInput: (x) => normalCdf(x) + (x * Math.exp(-0.5 * x * x)) / Math.sqrt(2 * Math.PI),
  },
  silu: {
    value: (x) => x * sigmoid(x),
    slopeFromInput: (x) => sigmoid(x) * (1 + x * sigmoid(-x)),
  },
  softplus: { value: softplus, slopeFromInput: sigmoid, slopeFromOutput: (y) => -Math.expm1(-y) },
  hard_sigmoid: {
    value: hardSigmoid,
    slopeFromInput: (x) => (x <= -3 || x >= 3 ? 0 : 1 / 6),
    slopeFromOutput: (y) => (y <= 0 || y >= 1 ? 0 : 1 / 6),
  },
  hard_swish: {
    value: (x) => x * hardSigmoid(x),
    slopeFromInput: (x) => (x < -3 ? 0 : x > 3 ? 1 : x / 3 + 0.5),
  },
};

/** @param {number} x @returns {number} (x + 3) / 6 between 0 and 1 */
function hardSigmoid(x) {
  return x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6;
}

/** The share of a normal distribution below x. @param {number} x @returns {number} absolute error below 1e-15 */
function normalCdf(x) {
  return 0.5 + 0.5 * erf(x * Math.SQRT1_2);
}

/**
 * By the series erf(x) = 2 / sqrt(pi) exp(-x^2) sum_n 2^n x^(2n+1) / (1 3 5 ... (2n+1)), whose terms have one sign: nothing cancels.
 * @param {number} x @returns {number}
 */
export function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x); // 1 - erf(6) is 2e-17
  let [term, sum] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-18 * Math.abs(sum); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return ((2 * Math.exp(-x * x)) / Math.sqrt(Math.PI)) * sum;
}

/** @param {number} x @returns {number} 1 / (1 + exp(-x)) without overflow, relatively exact on both sides */
export function sigmoid(x) {
  const e = Math.exp(-Math.abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

/** @param {number} x @returns {number} log(1 + exp(x)) without overflow: exp(x) exceeds float64 above 709 */
export function softplus(x) {
  return (x < 0 ? 0 : x) + Math.log1p(Math.exp(-Math.abs(x)));
}
