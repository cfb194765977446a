// Row weights: what each row counts for in the loss, scaled so that the rows that train count 1 on average.
import { EngineError } from "../errors.js";
import { checkShape } from "./data.js";
import { eachWindow } from "./sources.js";

/** @import { ArraySource } from "./sources.js" */

const bad = (/** @type {string} */ message) => new EngineError("data_invalid", `data.weight: ${message}`, { field: "data.weight" });

/** @param {ArraySource} source @param {number} rows @throws {EngineError} where it has no number for each row */
export function checkRowWeights(source, rows) {
  checkShape("data.weight", source);
  const { shape } = source;
  if (shape[0] !== rows || shape.slice(1).some((length) => length !== 1)) throw bad(`is [${shape}]; needed: a number for each of ${rows} rows, [${rows}]`);
}

/** A checker of values, called with each window. @param {number} firstRow @param {ArrayLike<number>} values */
export function checkRowWeightValues(firstRow, values) {
  for (let i = 0; i < values.length; i++) {
    if (!(Number.isFinite(Math.fround(values[i])) && values[i] >= 0)) throw bad(`row ${firstRow + i} has ${values[i]}; legal: finite numbers of at least 0`);
  }
}

/**
 * All weights, over the mean of those that train: as small a step as without them, and as large a loss.
 * @param {ArraySource} source @param {ArrayLike<number>} train rows @param {ArrayLike<number>} validation rows @param {AbortSignal} [signal]
 * @returns {Promise<Float32Array>} [rows]
 */
export async function scaledRowWeights(source, train, validation, signal) {
  const weights = new Float64Array(source.shape[0]);
  await eachWindow(source, (firstRow, values) => {
    checkRowWeightValues(firstRow, values);
    weights.set(values, firstRow);
  }, signal);
  const mean = sumOf(weights, train) / train.length;
  if (mean === 0) throw bad("the rows that train have all 0");
  const scaled = Float32Array.from(weights, (weight) => weight / mean);
  if (validation.length > 0 && sumOf(scaled, validation) === 0) throw bad("the rows that validate have all 0");
  return scaled;
}

/** @param {ArrayLike<number>} weights @param {ArrayLike<number>} rows */
export function sumOf(weights, rows) {
  let sum = 0;
  for (let i = 0; i < rows.length; i++) sum += weights[rows[i]];
  return sum;
}
