// dropout.js: elements that a mask drops are 0, the others are divided by the share that is kept.
import { map } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */

/** @param {Tensor} x @param {ArrayLike<number>} mask 1 where an element is kept, in the order of x @param {number} kept share of the elements @returns {Tensor} */
export function dropout(x, mask, kept) {
  return map(x, (value, i) => (mask[i] ? value / kept : 0));
}
