// sample_norm.js: layer and group normalization in float64: by the statistics of each sample, in two passes.
import { tensor } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */

/**
 * A sample is `pixels` times `channels`. What is normalized together, a set: the channels of a pixel where `pixelwise`, else channels / groups
 * channels at all pixels.
 * @typedef {{pixels: number, channels: number, groups: number, pixelwise: boolean, eps: number}} Sets
 */

/** Values of a set. @param {Sets} sets */
const valuesOf = ({ pixels, channels, groups, pixelwise }) => (pixelwise ? channels : (pixels * channels) / groups);

/** Calls `visit` for every element: where it is, the number of its set among all samples', its channel. @param {number} size @param {Sets} sets @param {(i: number, set: number, channel: number) => void} visit */
function each(size, { pixels, channels, groups, pixelwise }, visit) {
  for (let i = 0; i < size; i++) {
    const channel = i % channels;
    const at = Math.floor(i / channels); // sample and pixel
    visit(i, pixelwise ? at : Math.floor(at / pixels) * groups + Math.floor((channel * groups) / channels), channel);
  }
}

/**
 * @param {Tensor} x [M, ..., C] @param {Sets} sets
 * @returns {Tensor} [M, sets, 2] mean and 1 / sqrt(variance + eps), the variance over n
 */
export function sampleNormStatistics(x, sets) {
  const [rows, ofSample, values] = [x.shape[0], sets.pixelwise ? sets.pixels : sets.groups, valuesOf(sets)];
  const mean = new Float64Array(rows * ofSample);
  const variance = new Float64Array(rows * ofSample);
  each(x.data.length, sets, (i, set) => (mean[set] += x.data[i] / values));
  each(x.data.length, sets, (i, set) => (variance[set] += (x.data[i] - mean[set]) ** 2 / values));
  const s = tensor([rows, ofSample, 2]);
  mean.forEach((value, set) => {
    s.data[2 * set] = value;
    s.data[2 * set + 1] = 1 / Math.sqrt(variance[set] + sets.eps);
  });
  return s;
}

/** @param {Tensor} x @param {Tensor} s @param {number} i @param {number} set */
const normalized = (x, s, i, set) => (x.data[i] - s.data[2 * set]) * s.data[2 * set + 1];

/** @param {Tensor} x @param {Tensor} s @param {Tensor} gamma [C] @param {Tensor} beta [C] @param {Sets} sets @returns {Tensor} as x */
export function sampleNorm(x, s, gamma, beta, sets) {
  const y = tensor(x.shape);
  each(x.data.length, sets, (i, set, channel) => (y.data[i] = normalized(x, s, i, set) * gamma.data[channel] + beta.data[channel]));
  return y;
}

/** @param {Tensor} x @param {Tensor} s @param {Tensor} dy @param {Tensor} gamma @param {Sets} sets
 * @returns {Tensor} [M, sets, 2] means of dy gamma and of dy gamma times the normalized x */
export function sampleNormGradSums(x, s, dy, gamma, sets) {
  const sums = tensor(s.shape);
  const values = valuesOf(sets);
  each(x.data.length, sets, (i, set, channel) => {
    const g = dy.data[i] * gamma.data[channel];
    sums.data[2 * set] += g / values;
    sums.data[2 * set + 1] += (g * normalized(x, s, i, set)) / values;
  });
  return sums;
}

/** @param {Tensor} x @param {Tensor} s @param {Tensor} sums @param {Tensor} dy @param {Tensor} gamma @param {Sets} sets @returns {Tensor} as x */
export function sampleNormGradInput(x, s, sums, dy, gamma, sets) {
  const dx = tensor(x.shape);
  each(x.data.length, sets, (i, set, channel) => {
    const g = dy.data[i] * gamma.data[channel];
    dx.data[i] = s.data[2 * set + 1] * (g - sums.data[2 * set] - normalized(x, s, i, set) * sums.data[2 * set + 1]);
  });
  return dx;
}

/** @param {Tensor} x @param {Tensor} s @param {Tensor} dy @param {Sets} sets @returns {{gamma: Tensor, beta: Tensor}} gradients [C] */
export function sampleNormGradWeights(x, s, dy, sets) {
  const [gamma, beta] = [tensor([sets.channels]), tensor([sets.channels])];
  each(x.data.length, sets, (i, set, channel) => {
    gamma.data[channel] += dy.data[i] * normalized(x, s, i, set);
    beta.data[channel] += dy.data[i];
  });
  return { gamma, beta };
}
