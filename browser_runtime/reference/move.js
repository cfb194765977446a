// move.js: ops that move elements and compute nothing.
import { requireShapes, tensor } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */

/**
 * Lines of zeros around an image, or lines taken away: y[i, j] = x[i + offset, j + offset], 0 where x has none.
 * @param {Tensor} x [M,H,W,C] @param {{input: number[], output: number[], offset: number[]}} geometry @returns {Tensor} [M,OH,OW,C]
 */
export function shift2d(x, { input: [H, W, C], output, offset }) {
  const y = tensor([x.shape[0], ...output]);
  const [OH, OW] = output;
  y.data.forEach((_, at) => {
    const [c, j, i, m] = [at % C, Math.floor(at / C) % OW, Math.floor(at / (C * OW)) % OH, Math.floor(at / (C * OW * OH))];
    const [r, s] = [i + offset[0], j + offset[1]];
    if (r >= 0 && r < H && s >= 0 && s < W) y.data[at] = x.data[((m * H + r) * W + s) * C + c];
  });
  return y;
}

/** @param {Tensor} a [..., A] @param {Tensor} b [..., B] @returns {Tensor} [..., A + B] */
export function concat(a, b) {
  const [A, B] = [a, b].map(({ shape }) => /** @type {number} */ (shape.at(-1)));
  requireShapes("concat", a.data.length / A === b.data.length / B, a, b);
  const y = tensor([...a.shape.slice(0, -1), A + B]);
  for (let pixel = 0; pixel < a.data.length / A; pixel++) {
    y.data.set(a.data.subarray(pixel * A, (pixel + 1) * A), pixel * (A + B));
    y.data.set(b.data.subarray(pixel * B, (pixel + 1) * B), pixel * (A + B) + A);
  }
  return y;
}

/** @param {Tensor} x [..., N] @param {number} first @param {number} count of channels @returns {Tensor} [..., count] */
export function sliceChannels(x, first, count) {
  const N = /** @type {number} */ (x.shape.at(-1));
  const y = tensor([...x.shape.slice(0, -1), count]);
  for (let pixel = 0; pixel < x.data.length / N; pixel++) y.data.set(x.data.subarray(pixel * N + first, pixel * N + first + count), pixel * count);
  return y;
}
