// dropout.js: elements that a mask drops are 0, the others are divided by the share that is kept.
import { map } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */

/** @param {Tensor} x @param {ArrayLike<number>} mask 1 where an element is kept, in the order of x @param {number} keep @returns {Tensor} */
export function dropout(x, mask, keep) {
  return map(x, (value, i) => (mask[i] ? value / keep : 0));
}
