// batch_norm.js: batch normalization in float64: by the statistics of each channel over all samples and pixels, in two passes.
import { map, tensor, zip } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */
/** @typedef {{channels: number, eps: number}} Channels */

/**
 * Moves the running statistics as PyTorch does: r = (1 - momentum) r + momentum b, where b is the batch's mean, or its variance over n - 1.
 * @param {Tensor} x [M, ..., C] @param {Tensor} runningMean [C] @param {Tensor} runningVar [C] @param {Channels & {momentum: number}} attrs
 * @returns {{mean: Tensor, variance: Tensor, running_mean: Tensor, running_var: Tensor}} [C] each; `variance` over n
 */
export function batchNormStatistics(x, runningMean, runningVar, { channels, momentum }) {
  const n = x.data.length / channels;
  const mean = tensor([channels]);
  const variance = tensor([channels]);
  x.data.forEach((value, i) => (mean.data[i % channels] += value / n));
  x.data.forEach((value, i) => (variance.data[i % channels] += (value - mean.data[i % channels]) ** 2 / n));
  const toward = (/** @type {Tensor} */ running, /** @type {Tensor} */ seen) => zip(running, seen, (r, b) => (1 - momentum) * r + momentum * b);
  return { mean, variance, running_mean: toward(runningMean, mean), running_var: toward(runningVar, map(variance, (v) => (v * n) / (n - 1))) };
}

/** @param {Tensor} x @param {Tensor} mean @param {Tensor} variance @param {Channels} attrs @param {number} i */
const normalized = (x, mean, variance, { channels, eps }, i) => (x.data[i] - mean.data[i % channels]) / Math.sqrt(variance.data[i % channels] + eps);

/** @param {Tensor} x [M, ..., C] @param {Tensor} mean [C] @param {Tensor} variance [C] @param {Tensor} gamma [C] @param {Tensor} beta [C] @param {Channels} attrs
 * @returns {Tensor} as x */
export function batchNorm(x, mean, variance, gamma, beta, attrs) {
  return map(x, (_, i) => normalized(x, mean, variance, attrs, i) * gamma.data[i % attrs.channels] + beta.data[i % attrs.channels]);
}

/** @param {Tensor} x @param {Tensor} mean @param {Tensor} variance @param {Tensor} dy @param {Channels} attrs @returns {{gamma: Tensor, beta: Tensor}} gradients [C] */
export function batchNormGradWeights(x, mean, variance, dy, attrs) {
  const [gamma, beta] = [tensor([attrs.channels]), tensor([attrs.channels])];
  dy.data.forEach((gradient, i) => {
    gamma.data[i % attrs.channels] += gradient * normalized(x, mean, variance, attrs, i);
    beta.data[i % attrs.channels] += gradient;
  });
  return { gamma, beta };
}

/** By statistics that do not depend on x. @param {Tensor} variance @param {Tensor} dy @param {Tensor} gamma @param {Channels} attrs @returns {Tensor} as dy */
export function batchNormGradScale(variance, dy, gamma, { channels, eps }) {
  return map(dy, (gradient, i) => (gradient * gamma.data[i % channels]) / Math.sqrt(variance.data[i % channels] + eps));
}

/** The batch's own statistics depend on x too. @param {Tensor} x @param {Tensor} mean @param {Tensor} variance @param {Tensor} dy @param {Tensor} gamma
 * @param {{gamma: Tensor, beta: Tensor}} sums gradients of gamma and beta @param {Channels} attrs @returns {Tensor} as x */
export function batchNormGradInput(x, mean, variance, dy, gamma, sums, attrs) {
  const { channels, eps } = attrs;
  const n = x.data.length / channels;
  return map(dy, (gradient, i) => {
    const c = i % channels;
    const centred = gradient - sums.beta.data[c] / n - (normalized(x, mean, variance, attrs, i) * sums.gamma.data[c]) / n;
    return (gamma.data[c] / Math.sqrt(variance.data[c] + eps)) * centred;
  });
}
