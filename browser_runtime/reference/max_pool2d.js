// max_pool2d.js: the largest element of each window, and its gradient, which the first largest one takes. Padding never wins.
import { tensor } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */
/** @typedef {{taps: number[], stride: number[], padding: number[], input: number[], output: number[]}} Geometry
 * `padding` before the first row and column; input [H,W,C], output [OH,OW,C]: a sequence is an image of one row, and comes as it is */

/**
 * Offsets of the first largest element of each window: of each output element, in order.
 * @param {Tensor} x [M,H,W,C] @param {Geometry} geometry
 * @returns {Int32Array}
 */
function winners(x, { taps, stride, padding, input: [H, W, C], output }) {
  const M = x.shape[0];
  const [OH, OW] = output;
  const at = new Int32Array(M * OH * OW * C).fill(-1);
  at.forEach((_, i) => {
    const [c, ox, oy, m] = [i % C, Math.floor(i / C) % OW, Math.floor(i / (C * OW)) % OH, Math.floor(i / (C * OW * OH))];
    for (let ky = 0; ky < taps[0]; ky++) {
      for (let kx = 0; kx < taps[1]; kx++) {
        const [iy, ix] = [oy * stride[0] + ky - padding[0], ox * stride[1] + kx - padding[1]];
        if (iy < 0 || iy >= H || ix < 0 || ix >= W) continue;
        const here = ((m * H + iy) * W + ix) * C + c;
        // Like PyTorch, NaN wins.
        if (at[i] < 0 || x.data[here] > x.data[at[i]] || (Number.isNaN(x.data[here]) && !Number.isNaN(x.data[at[i]]))) at[i] = here;
      }
    }
  });
  return at;
}

/** @param {Tensor} x [M,H,W,C] @param {Geometry} geometry @returns {Tensor} [M,OH,OW,C] */
export function maxPool2d(x, geometry) {
  return tensor([x.shape[0], ...geometry.output], Float64Array.from(winners(x, geometry), (at) => x.data[at]));
}

/** @param {Tensor} x [M,H,W,C] @param {Tensor} dy [M,OH,OW,C] @param {Geometry} geometry @returns {Tensor} [M,H,W,C] */
export function maxPool2dGrad(x, dy, geometry) {
  const dx = tensor(x.shape);
  winners(x, geometry).forEach((at, i) => (dx.data[at] += dy.data[i]));
  return dx;
}
