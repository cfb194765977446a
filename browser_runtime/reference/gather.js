// gather.js: rows of a data set in another order.
import { matrixSize, tensor } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */

/** @param {Tensor} source [M,N] @param {ArrayLike<number>} order row numbers; -1 gives a row of zeros @returns {Tensor} */
export function gather(source, order) {
  const [M, N] = matrixSize(source, "gather");
  const result = tensor([order.length, N]);
  Array.from(order).forEach((row, at) => {
    if (!Number.isInteger(row) || row < -1 || row >= M) throw new RangeError(`gather: no row ${row} among ${M}`);
    if (row >= 0) result.data.set(source.data.subarray(row * N, (row + 1) * N), at * N);
  });
  return result;
}
