// embedding.js: rows of a table by their numbers, and the gradient of the table, in float64.
import { tensor } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */

/** @param {Tensor} ids [M,L] @param {Tensor} table [V,U] @returns {Tensor} [M,L,U]; NaN where no row has the number */
export function embedding(ids, table) {
  const [V, U] = table.shape;
  const y = tensor([...ids.shape, U]);
  ids.data.forEach((id, i) => {
    if (Number.isInteger(id) && id >= 0 && id < V) y.data.set(table.data.subarray(id * U, (id + 1) * U), i * U);
    else y.data.fill(NaN, i * U, (i + 1) * U);
  });
  return y;
}

/** @param {Tensor} ids [M,L] @param {Tensor} dy [M,L,U] @param {number} vocabulary @returns {Tensor} [V,U] */
export function embeddingGradWeights(ids, dy, vocabulary) {
  const U = /** @type {number} */ (dy.shape.at(-1));
  const dw = tensor([vocabulary, U]);
  ids.data.forEach((id, i) => {
    for (let u = 0; u < U; u++) dw.data[id * U + u] += dy.data[i * U + u];
  });
  return dw;
}
