// softmax_channels.js: softmax over the last axis, and its gradient.
import { map, requireShapes } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */

/** @param {Tensor} x [..., C] @returns {Tensor} exp(x) / sum over the last axis of exp(x), the largest subtracted before */
export function softmaxChannels(x) {
  const C = /** @type {number} */ (x.shape.at(-1));
  const tops = runs(x.data, C, (run) => Math.max(...run));
  const e = map(x, (value, i) => Math.exp(value - tops[Math.floor(i / C)]));
  const sums = runs(e.data, C, (run) => run.reduce((a, b) => a + b, 0));
  return map(e, (value, i) => value / sums[Math.floor(i / C)]);
}

/** @param {Tensor} dy [..., C] @param {Tensor} y [..., C] softmax's output @returns {Tensor} y (dy - sum over the last axis of dy y) */
export function softmaxChannelsGrad(dy, y) {
  requireShapes("softmax_channels_grad", dy.shape.join() === y.shape.join(), dy, y);
  const C = /** @type {number} */ (y.shape.at(-1));
  const products = y.data.map((value, i) => value * dy.data[i]);
  const sums = runs(products, C, (run) => run.reduce((a, b) => a + b, 0));
  return map(y, (value, i) => value * (dy.data[i] - sums[Math.floor(i / C)]));
}

/** One number for each C consecutive ones. @param {Float64Array} values @param {number} C @param {(run: Float64Array) => number} f */
function runs(values, C, f) {
  return Float64Array.from({ length: values.length / C }, (_, i) => f(values.subarray(i * C, (i + 1) * C)));
}
