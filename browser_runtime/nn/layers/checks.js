// What many layers ask of their inputs.
import { EngineError } from "../../errors.js";

/** @import { Value } from "../model.js" */

/** Layers that read one value. */
export const ONE = { least: 1, most: 1 };

/** @param {string} field @param {string} message */
export const refuse = (field, message) => new EngineError("spec_invalid", message, { field });

/** @param {Value} value @param {any} layer @param {string} field @returns {number[]} [height, width, channels] */
export function imageShape({ shape }, layer, field) {
  if (shape.length !== 3) throw refuse(field, `${layer.type} needs an input [height, width, channels], this one is [${shape}]`);
  return shape;
}

/** @param {Value} value @param {any} layer @param {string} field @returns {number[]} [length, channels] */
export function sequenceShape({ shape }, layer, field) {
  if (shape.length !== 2) throw refuse(field, `${layer.type} needs an input [length, channels], this one is [${shape}]`);
  return shape;
}

/** How a layer's window slides over a sequence, as over an image of one row. @param {any} layer */
export function oneRow({ stride, padding }) {
  return { stride: [1, stride], padding: Array.isArray(padding) ? [[0, 0], padding] : padding };
}

/**
 * Where a sliding window stands: size of its output, and the padding before the first row and column.
 * `same` pads as TensorFlow does: output = ceil(input / stride), the odd pixel behind.
 * @param {number[]} shape [height, width, channels] @param {any} layer @param {number[]} taps @param {number[]} dilation @param {string} field
 */
export function slide(shape, layer, taps, dilation, field) {
  const { stride, padding } = layer;
  const axis = (/** @type {0|1} */ i) => {
    const extent = (taps[i] - 1) * dilation[i] + 1;
    const total = padding === "same" ? Math.max(0, (Math.ceil(shape[i] / stride[i]) - 1) * stride[i] + extent - shape[i]) : 0;
    const [before, after] = Array.isArray(padding) ? padding[i] : [Math.floor(total / 2), Math.ceil(total / 2)];
    const size = Math.floor((shape[i] + before + after - extent) / stride[i]) + 1;
    if (size < 1) throw refuse(field, `a window of ${extent} does not fit ${shape[i]} + ${before + after} ${i ? "columns" : "rows"}`);
    return { before, size };
  };
  const [rows, columns] = [axis(0), axis(1)];
  return { taps, stride, dilation, padding: [rows.before, columns.before], size: [rows.size, columns.size] };
}
