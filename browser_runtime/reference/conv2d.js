// conv2d.js: 2-D convolution (correlation, as every framework's) before its activation, and its gradients in float64; groups; transposed.
import { tensor } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */

/**
 * `padding` is that before the first row and column. A convolution makes a pixel of each window over what it reads; `transposed` reads one
 * for each window, and what it makes lies under them. Each of the `groups` joins its share of the channels read and made.
 * @typedef {{stride: number[], dilation: number[], padding: number[], groups?: number, transposed?: boolean}} Geometry
 */

/**
 * Calls `visit` for every pair of pixels that a tap joins.
 * @param {number[]} read [M,H,W,C] @param {number[]} made [M,OH,OW,F] @param {number[]} kernel [KH,KW,C/G,F] @param {Geometry} geometry
 * @param {(x: number, y: number, tap: number) => void} visit offsets of channel 0 of what is read and made, and of the tap's kernel
 */
function eachTap(read, made, [KH, KW, C, F], { stride, dilation, padding, transposed }, visit) {
  const [[M, H, W, under], [, OH, OW, windows]] = transposed ? [made, read] : [read, made];
  for (let m = 0; m < M; m++) {
    for (let oy = 0; oy < OH; oy++) {
      for (let ox = 0; ox < OW; ox++) {
        for (let ky = 0; ky < KH; ky++) {
          for (let kx = 0; kx < KW; kx++) {
            const iy = oy * stride[0] + ky * dilation[0] - padding[0];
            const ix = ox * stride[1] + kx * dilation[1] - padding[1];
            if (iy < 0 || iy >= H || ix < 0 || ix >= W) continue;
            const [there, here] = [((m * H + iy) * W + ix) * under, ((m * OH + oy) * OW + ox) * windows];
            const tap = (ky * KW + kx) * C * F;
            if (transposed) visit(here, there, tap);
            else visit(there, here, tap);
          }
        }
      }
    }
  }
}

/** First channel that each filter sums. @param {number} C of a group @param {number} F of all groups @param {number} groups */
const firstChannels = (C, F, groups) => Array.from({ length: F }, (_, f) => Math.floor((f * groups) / F) * C);

/**
 * @param {Tensor} x [M,H,W,C] @param {Tensor} kernel [KH,KW,C/G,F] @param {Tensor|null} bias [F]
 * @param {Geometry & {output: number[]}} geometry output [OH,OW,F]
 * @returns {Tensor} [M,OH,OW,F]
 */
export function conv2d(x, kernel, bias, geometry) {
  const [C, F] = kernel.shape.slice(2);
  const first = firstChannels(C, F, geometry.groups ?? 1);
  const y = tensor([x.shape[0], ...geometry.output]);
  for (let i = 0; i < y.data.length; i++) y.data[i] = bias ? bias.data[i % F] : 0;
  eachTap(x.shape, y.shape, kernel.shape, geometry, (xAt, yAt, kAt) => {
    for (let c = 0; c < C; c++) for (let f = 0; f < F; f++) y.data[yAt + f] += x.data[xAt + first[f] + c] * kernel.data[kAt + c * F + f];
  });
  return y;
}

/**
 * @param {Tensor} dy [M,OH,OW,F] @param {Tensor} kernel [KH,KW,C/G,F] @param {Geometry & {input: number[]}} geometry input [H,W,C]
 * @returns {Tensor} dx [M,H,W,C]
 */
export function conv2dGradInput(dy, kernel, geometry) {
  const [C, F] = kernel.shape.slice(2);
  const first = firstChannels(C, F, geometry.groups ?? 1);
  const dx = tensor([dy.shape[0], ...geometry.input]);
  eachTap(dx.shape, dy.shape, kernel.shape, geometry, (xAt, yAt, kAt) => {
    for (let c = 0; c < C; c++) for (let f = 0; f < F; f++) dx.data[xAt + first[f] + c] += dy.data[yAt + f] * kernel.data[kAt + c * F + f];
  });
  return dx;
}

/**
 * @param {Tensor} x [M,H,W,C] @param {Tensor} dy [M,OH,OW,F] @param {number[]} taps [KH,KW] @param {Geometry} geometry
 * @returns {{kernel: Tensor, bias: Tensor}} gradients [KH,KW,C/G,F] and [F]
 */
export function conv2dGradWeights(x, dy, taps, geometry) {
  const groups = geometry.groups ?? 1;
  const [C, F] = [x.shape[3] / groups, dy.shape[3]];
  const first = firstChannels(C, F, groups);
  const kernel = tensor([...taps, C, F]);
  const bias = tensor([F]);
  dy.data.forEach((value, i) => (bias.data[i % F] += value));
  eachTap(x.shape, dy.shape, kernel.shape, geometry, (xAt, yAt, kAt) => {
    for (let c = 0; c < C; c++) for (let f = 0; f < F; f++) kernel.data[kAt + c * F + f] += x.data[xAt + first[f] + c] * dy.data[yAt + f];
  });
  return { kernel, bias };
}
