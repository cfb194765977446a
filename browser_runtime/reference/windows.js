// windows.js: sums and means of sliding windows, and their transposes: what each element gets back from the windows that it stands in. Padding is not counted.
import { tensor } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */
/** @typedef {{taps: number[], stride: number[], padding: number[], input: number[], output: number[]}} Geometry input [H,W,C], output [OH,OW,C] */

/**
 * Calls `visit(at, elements)` for each window and channel of `rows` samples, with offsets into [M,OH,OW,C] and [M,H,W,C].
 * @param {number} rows @param {Geometry} geometry @param {(at: number, elements: number[]) => void} visit
 */
function eachWindow(rows, { taps, stride, padding, input, output }, visit) {
  const [H, W, C] = input;
  const [OH, OW] = output;
  for (let at = 0; at < rows * OH * OW * C; at++) {
    const [c, ox, oy, m] = [at % C, Math.floor(at / C) % OW, Math.floor(at / (C * OW)) % OH, Math.floor(at / (C * OW * OH))];
    const elements = [];
    for (let y = Math.max(0, oy * stride[0] - padding[0]); y < Math.min(H, oy * stride[0] - padding[0] + taps[0]); y++) {
      for (let x = Math.max(0, ox * stride[1] - padding[1]); x < Math.min(W, ox * stride[1] - padding[1] + taps[1]); x++) {
        elements.push(((m * H + y) * W + x) * C + c);
      }
    }
    visit(at, elements);
  }
}

/** @param {Tensor} x [M,H,W,C] @param {Geometry} geometry @param {boolean} mean @returns {Tensor} [M,OH,OW,C] */
export function windowSum(x, geometry, mean) {
  const y = tensor([x.shape[0], ...geometry.output]);
  eachWindow(x.shape[0], geometry, (at, elements) => {
    const sum = elements.reduce((total, element) => total + x.data[element], 0);
    y.data[at] = mean ? sum / elements.length : sum;
  });
  return y;
}

/** @param {Tensor} y [M,OH,OW,C] @param {Geometry} geometry @param {boolean} mean @returns {Tensor} [M,H,W,C] */
export function windowSpread(y, geometry, mean) {
  const x = tensor([y.shape[0], ...geometry.input]);
  eachWindow(y.shape[0], geometry, (at, elements) => {
    for (const element of elements) x.data[element] += mean ? y.data[at] / elements.length : y.data[at];
  });
  return x;
}
