// conv2d.js: 2-D convolution (correlation, as every framework's) before its activation, and its gradients in float64; groups; transposed.
import { size, tensor } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */

/**
 * `input` and `output` are shapes of a sample, [height, width, channels]: a sequence [length, channels] is an image of one row, and comes as it is.
 * `padding` is that before the first row and column. A convolution makes a pixel of each window over what it reads; `transposed` reads one
 * for each window, and what it makes lies under them. Each of the `groups` joins its share of the channels read and made.
 * @typedef {{taps: number[], stride: number[], dilation: number[], padding: number[], input: number[], output: number[], groups?: number,
 *   transposed?: boolean, kernel?: number[]}} Geometry `kernel`: the shape in which its gradient is wanted
 */

/** @param {Tensor} x @param {number[]} sample @returns {number[]} [M, ...sample] */
const shapeOf = ({ data }, sample) => [data.length / size(sample), ...sample];

/**
 * Calls `visit` for every pair of pixels that a tap joins.
 * @param {number[]} read [M,H,W,C] @param {number[]} made [M,OH,OW,F] @param {Geometry} geometry
 * @param {(x: number, y: number, tap: number) => void} visit offsets of channel 0 of what is read and made, and the tap's number
 */
function eachTap(read, made, { taps: [KH, KW], stride, dilation, padding, transposed }, visit) {
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
            const tap = ky * KW + kx;
            if (transposed) visit(here, there, tap);
            else visit(there, here, tap);
          }
        }
      }
    }
  }
}

/** @param {Geometry} geometry @returns {[number, number, Int32Array]} C of a group, F of all, and the first channel that each filter sums */
function sharesOf({ input, output, groups = 1 }) {
  const [C, F] = [input[2] / groups, output[2]];
  return [C, F, Int32Array.from({ length: F }, (_, f) => Math.floor((f * groups) / F) * C)];
}

/** @param {Tensor} x [M,H,W,C] @param {Tensor} kernel [KH,KW,C/G,F] @param {Tensor|null} bias [F] @param {Geometry} geometry @returns {Tensor} [M,OH,OW,F] */
export function conv2d(x, kernel, bias, geometry) {
  const [C, F, first] = sharesOf(geometry);
  const read = shapeOf(x, geometry.input);
  const y = tensor([read[0], ...geometry.output]);
  for (let i = 0; i < y.data.length; i++) y.data[i] = bias ? bias.data[i % F] : 0;
  eachTap(read, y.shape, geometry, (xAt, yAt, tap) => {
    for (let c = 0; c < C; c++) for (let f = 0; f < F; f++) y.data[yAt + f] += x.data[xAt + first[f] + c] * kernel.data[(tap * C + c) * F + f];
  });
  return y;
}

/** What each window holds, tap by tap; zeros over the edge. @param {Tensor} x [M,H,W,C] @param {Geometry} geometry @returns {Tensor} [M,OH,OW,KH KW C] */
export function im2col(x, geometry) {
  const [C, columns] = [geometry.input[2], geometry.taps[0] * geometry.taps[1] * geometry.input[2]];
  const read = shapeOf(x, geometry.input);
  const patches = tensor([read[0], ...geometry.output.slice(0, 2), columns]);
  eachTap(read, patches.shape, geometry, (xAt, at, tap) => {
    for (let c = 0; c < C; c++) patches.data[at + tap * C + c] = x.data[xAt + c];
  });
  return patches;
}

/** @param {Tensor} dy [M,OH,OW,F] @param {Tensor} kernel [KH,KW,C/G,F] @param {Geometry} geometry @returns {Tensor} dx [M,H,W,C] */
export function conv2dGradInput(dy, kernel, geometry) {
  const [C, F, first] = sharesOf(geometry);
  const made = shapeOf(dy, geometry.output);
  const dx = tensor([made[0], ...geometry.input]);
  eachTap(dx.shape, made, geometry, (xAt, yAt, tap) => {
    for (let c = 0; c < C; c++) for (let f = 0; f < F; f++) dx.data[xAt + first[f] + c] += dy.data[yAt + f] * kernel.data[(tap * C + c) * F + f];
  });
  return dx;
}

/**
 * @param {Tensor} x [M,H,W,C] @param {Tensor} dy [M,OH,OW,F] @param {Geometry} geometry
 * @returns {{kernel: Tensor, bias: Tensor}} gradients [KH,KW,C/G,F] and [F]
 */
export function conv2dGradWeights(x, dy, geometry) {
  const [C, F, first] = sharesOf(geometry);
  const kernel = tensor(geometry.kernel ?? [...geometry.taps, C, F]);
  const bias = tensor([F]);
  dy.data.forEach((value, i) => (bias.data[i % F] += value));
  eachTap(shapeOf(x, geometry.input), shapeOf(dy, geometry.output), geometry, (xAt, yAt, tap) => {
    for (let c = 0; c < C; c++) for (let f = 0; f < F; f++) kernel.data[(tap * C + c) * F + f] += x.data[xAt + first[f] + c] * dy.data[yAt + f];
  });
  return { kernel, bias };
}
