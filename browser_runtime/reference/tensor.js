// tensor.js: what the float64 reference computes with. Plain arrays of numbers, row-major; no views, no broadcasting.

/** @typedef {{shape: number[], data: Float64Array}} Tensor */

/** Elements of a shape. @param {number[]} shape */
export const size = (shape) => shape.reduce((a, b) => a * b, 1);

/**
 * @param {number[]} shape
 * @param {ArrayLike<number>} [values] zeros where left out
 * @returns {Tensor}
 */
export function tensor(shape, values) {
  const wanted = size(shape);
  const data = values === undefined ? new Float64Array(wanted) : Float64Array.from(values);
  if (data.length !== wanted) throw new RangeError(`a tensor [${shape}] has ${wanted} values, not ${data.length}`);
  return { shape: [...shape], data };
}

/** @param {Tensor} x @param {(value: number, index: number) => number} f @returns {Tensor} */
export function map(x, f) {
  return { shape: [...x.shape], data: x.data.map(f) };
}

/**
 * Element by element; the shapes must be equal.
 * @param {Tensor} a @param {Tensor} b @param {(a: number, b: number) => number} f @returns {Tensor}
 */
export function zip(a, b, f) {
  requireShapes("element-wise op", a.shape.join() === b.shape.join(), a, b);
  return map(a, (value, index) => f(value, b.data[index]));
}

/** @param {Tensor} x @param {string} what for the message @returns {[number, number]} rows and columns */
export function matrixSize(x, what) {
  requireShapes(`${what}: a matrix is needed`, x.shape.length === 2, x);
  return [x.shape[0], x.shape[1]];
}

/** @param {string} what @param {boolean} fits @param {Tensor[]} tensors all whose shapes the message should show */
export function requireShapes(what, fits, ...tensors) {
  if (!fits) throw new RangeError(`${what}: shapes ${tensors.map(({ shape }) => `[${shape}]`).join(" and ")} do not fit`);
}
