// losses.js: losses from logits in float64: the loss of each row, and the gradient of their mean over the batch.
//
// The row loss is the sum over the classes for softmax_cross_entropy, and the mean over the outputs for all others.
// Targets hold a value for each output (labels "values"), or one class number a row (labels "index").
import { sigmoid, softplus } from "./activations.js";
import { map, matrixSize, requireShapes, tensor } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */
/** @typedef {"index" | "values"} Labels */

/**
 * Label smoothing moves targets y to (1 - smoothing) y + smoothing / classes (2 for bce). Weights: of each class, or for bce of the targets' share
 * of 1 for each output. delta: where huber goes over from squares to sizes.
 * share: of the rows of a step that are in this batch.
 * @typedef {{smoothing?: number, delta?: number, weights?: ArrayLike<number>|null, share?: number}} Options
 *
 * @typedef {object} Loss both functions take a row of logits and a row of targets
 * @property {(z: Float64Array, y: Float64Array, o: Options) => number} row
 * @property {(z: Float64Array, y: Float64Array, o: Options) => Float64Array} rowGrad d row / d z
 * @property {(z: Float64Array, y: Float64Array) => number} correct share of the row that is predicted right
 */

/** @type {Record<string, Loss>} */
export const losses = {
  // y softplus(-z) + (1 - y) softplus(z); softplus(z) - y z would subtract two equal numbers where y = 1 and z is large
  bce: {
    row: (z, y, o) => mean(z, (value, n) => yes(y, n, o) * softplus(-value) + no(y, n, o) * softplus(value)),
    rowGrad: (z, y, o) => z.map((value, n) => (no(y, n, o) * sigmoid(value) - yes(y, n, o) * sigmoid(-value)) / z.length),
    correct: (z, y) => mean(z, (value, n) => Number(value > 0 === y[n] > 0.5)),
  },
  mse: {
    row: (z, y) => mean(z, (value, n) => (value - y[n]) ** 2),
    rowGrad: (z, y) => z.map((value, n) => (2 * (value - y[n])) / z.length),
    correct: () => 0, // accuracy means nothing here
  },
  mae: {
    row: (z, y) => mean(z, (value, n) => Math.abs(value - y[n])),
    rowGrad: (z, y) => z.map((value, n) => Math.sign(value - y[n]) / z.length),
    correct: () => 0,
  },
  // d^2 / 2 up to delta, delta (|d| - delta / 2) beyond
  huber: {
    row: (z, y, { delta = 1 }) => mean(z, (value, n) => huber(value - y[n], delta)),
    rowGrad: (z, y, { delta = 1 }) => z.map((value, n) => Math.max(-delta, Math.min(delta, value - y[n])) / z.length),
    correct: () => 0,
  },
  // max(0, 1 - s z) with s = 1 for a target of 1, else -1: targets are 0 or -1, and 1
  hinge: {
    row: (z, y) => mean(z, (value, n) => Math.max(0, 1 - side(y[n]) * value)),
    rowGrad: (z, y) => z.map((value, n) => (1 - side(y[n]) * value > 0 ? -side(y[n]) / z.length : 0)),
    correct: (z, y) => mean(z, (value, n) => Number(value > 0 === y[n] > 0.5)),
  },
  // sum_n y_n (logsumexp(z) - z_n); subtract the row maximum: exp overflows above 709
  softmax_cross_entropy: {
    row(z, given, o) {
      const { top, total } = exponentials(z);
      const y = effective(given, o);
      return z.reduce((sum, value, n) => sum + y[n] * (Math.log(total) + (top - value)), 0);
    },
    rowGrad(z, given, o) {
      const { parts, total } = exponentials(z);
      const y = effective(given, o);
      const weight = y.reduce((sum, value) => sum + value, 0); // 1 for probabilities
      return z.map((_, n) => (parts[n] / total) * weight - y[n]);
    },
    correct: (z, y) => Number(firstLargest(z) === firstLargest(y)),
  },
};

/** A target as the loss takes it. @param {number} y @param {number} count of classes @param {Options} o */
const smoothed = (y, count, { smoothing = 0 }) => (1 - smoothing) * y + smoothing / count;
const yes = (/** @type {Float64Array} */ y, /** @type {number} */ n, /** @type {Options} */ o) => smoothed(y[n], 2, o) * (o.weights?.[n] ?? 1);
const no = (/** @type {Float64Array} */ y, /** @type {number} */ n, /** @type {Options} */ o) => smoothed(1 - y[n], 2, o);
const effective = (/** @type {Float64Array} */ y, /** @type {Options} */ o) => y.map((value, n) => smoothed(value, y.length, o) * (o.weights?.[n] ?? 1));
const side = (/** @type {number} */ y) => (y > 0.5 ? 1 : -1);
const huber = (/** @type {number} */ d, /** @type {number} */ delta) => (Math.abs(d) <= delta ? (d * d) / 2 : delta * (Math.abs(d) - delta / 2));

/**
 * @param {string} fn name of the loss
 * @param {Tensor} z [M,N] logits
 * @param {Tensor} target [M,N], or [M] or [M,1] class numbers
 * @param {Labels} [labels]
 * @param {Options} [options]
 * @returns {Tensor} [M] the loss of each row
 */
export function lossRows(fn, z, target, labels = "values", options = {}) {
  return eachRow(z, target, labels, (row, y) => lossNamed(fn).row(row, y, options));
}

/**
 * Takes what lossRows takes.
 * @param {string} fn @param {Tensor} z @param {Tensor} target @param {Labels} [labels]
 * @returns {number} the mean over the batch
 */
export function lossMean(fn, z, target, labels = "values") {
  return mean(lossRows(fn, z, target, labels).data, (value) => value);
}

/**
 * Takes what lossRows takes.
 * @param {string} fn @param {Tensor} z @param {Tensor} target @param {Labels} [labels] @param {Options} [options]
 * @returns {Tensor} [M,N] the gradient of the mean over the batch with respect to z
 */
export function lossGrad(fn, z, target, labels = "values", options = {}) {
  const [M, N] = matrixSize(z, fn);
  const y = targetValues(z, target, labels);
  const dz = tensor([M, N]);
  for (let m = 0; m < M; m++) dz.data.set(lossNamed(fn).rowGrad(rowOf(z, m), rowOf(y, m), options), m * N);
  return map(dz, (value) => (value / M) * (options.share ?? 1));
}

/**
 * Takes what lossRows takes.
 * @param {string} fn @param {Tensor} z @param {Tensor} target @param {Labels} [labels]
 * @returns {Tensor} [M] the share of each row that is predicted right: 0 or 1 but for bce with several outputs
 */
export function correctRows(fn, z, target, labels = "values") {
  return eachRow(z, target, labels, (row, y) => lossNamed(fn).correct(row, y));
}

/**
 * Losses or gradients times what each row counts for.
 * @param {Tensor} values [M] or [M,N] @param {Tensor} [weights] [M,1]; without them every row counts 1
 * @returns {Tensor}
 */
export function weightRows({ shape, data }, weights) {
  const columns = data.length / shape[0];
  return tensor(shape, weights ? data.map((value, i) => value * weights.data[Math.floor(i / columns)]) : data);
}

/** @param {string} fn @returns {Loss} */
function lossNamed(fn) {
  const loss = losses[fn];
  if (loss === undefined) throw new RangeError(`no loss ${fn}; use one of ${Object.keys(losses).join(", ")}`);
  return loss;
}

/** @param {Tensor} z @param {Tensor} target @param {Labels} labels @param {(z: Float64Array, y: Float64Array) => number} f */
function eachRow(z, target, labels, f) {
  const M = z.shape[0];
  const y = targetValues(z, target, labels);
  return tensor([M], Array.from({ length: M }, (_, m) => f(rowOf(z, m), rowOf(y, m))));
}

/** @param {Tensor} z @param {Tensor} target @param {Labels} labels @returns {Tensor} [M,N]; class numbers become one-hot rows */
function targetValues(z, target, labels) {
  const [M, N] = matrixSize(z, "loss");
  requireShapes(`loss with labels ${labels}`, target.data.length === (labels === "index" ? M : M * N), z, target);
  if (labels === "values") return tensor([M, N], target.data);
  const y = tensor([M, N]);
  target.data.forEach((label, m) => {
    if (!Number.isInteger(label) || label < 0 || label >= N) throw new RangeError(`row ${m}: no class ${label} among ${N}`);
    y.data[m * N + label] = 1;
  });
  return y;
}

/** @param {Tensor} x [M,N] @param {number} m @returns {Float64Array} a view of row m */
function rowOf(x, m) {
  const N = x.shape[1];
  return x.data.subarray(m * N, (m + 1) * N);
}

/** @param {Float64Array} z exp(z - top), top, and their sum: softmax is parts / total */
function exponentials(z) {
  const top = Math.max(...z);
  const parts = z.map((value) => Math.exp(value - top));
  return { top, parts, total: parts.reduce((sum, part) => sum + part, 0) };
}

/** @param {Float64Array} values @param {(value: number, index: number) => number} f */
function mean(values, f) {
  return values.reduce((sum, value, index) => sum + f(value, index), 0) / values.length;
}

/** @param {Float64Array} values */
function firstLargest(values) {
  return values.indexOf(Math.max(...values));
}
