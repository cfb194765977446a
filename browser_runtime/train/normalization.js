// Normalization of inputs: fitted once on the rows that train, applied to all that the network sees afterwards.
// Each feature, or each channel of images (the last axis), has its own offset and scale: x' = (x - offset) * scale in float64 from the
// float32 x, rounded once to float32. What does not vary keeps the scale 1.
import { size } from "../nn/graph.js";
import { mapValues, unnamed } from "../nn/inputs.js";
import { eachWindow, readRows } from "./sources.js";

/** @import { ModelInput } from "../nn/inputs.js" */
/** @import { ArraySource } from "./sources.js" */

/** @typedef {{kind?: "standard"|"minmax", offset: Float64Array, scale: Float64Array}} Normalization `offset` and `scale` [features] or [channels];
 * `kind` where they were fitted here, not inherited */
/** By the names of the inputs that are normalized. @typedef {Record<string, Normalization>} Normalizations */
/** @typedef {{kind?: string, offset: number[], scale: number[]}} Recorded */

const EPSILON = 2 ** -23; // of float32
const TINY = 2 ** -126; // the smallest normal float32

/** Offsets and scales that an array has. @param {number[]} shape rows first */
const columnsOf = (shape) => (shape.length > 1 ? /** @type {number} */ (shape.at(-1)) : 1);

/**
 * Offset and scale of each feature or channel, from the rows that train and no others.
 * The same array gives the same bits: windows are cut by its shape alone, and their moments are merged in order (Chan, Golub and LeVeque,
 * "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
 * @param {"standard"|"minmax"} kind mean 0 and deviation 1, or 0 to 1
 * @param {ArraySource} x
 * @param {Int32Array} train rows that train
 * @param {(firstRow: number, values: ArrayLike<number>) => void} check of the values, called with each window
 * @param {AbortSignal} [signal]
 * @returns {Promise<Normalization>}
 */
export async function fit(kind, x, train, check, signal) {
  const trains = new Uint8Array(x.shape[0]);
  for (const row of train) trains[row] = 1;
  const columns = columnsOf(x.shape);
  const width = size(x.shape.slice(1));
  const moments = kind === "standard" ? new Moments(columns) : new Range(columns);
  await eachWindow(x, (firstRow, values) => {
    check(firstRow, values);
    moments.add(Float32Array.from(values), (i) => trains[firstRow + i] === 1, width);
  }, signal);
  const { offset, spread } = moments.result();
  const scale = spread.map((value, c) => {
    // Below this a spread is rounding: its inverse would blow noise up to the size of the data.
    return value > EPSILON * Math.max(Math.abs(offset[c]), TINY) ? 1 / value : 1;
  });
  return { kind, offset, scale };
}

/**
 * The array as the network sees it.
 * @param {Normalization|undefined} normalization @param {ArraySource} source
 * @returns {ArraySource}
 */
export function normalized(normalization, source) {
  if (!normalization) return source;
  const { offset, scale } = normalization;
  const apply = (/** @type {ArrayLike<number>} */ given) => {
    const values = Float32Array.from(given);
    for (let i = 0; i < values.length; ) for (let c = 0; c < offset.length; c++, i++) values[i] = (values[i] - offset[c]) * scale[c];
    return values;
  };
  const { shape } = source;
  if ("data" in source) return { shape, dtype: "float32", data: apply(source.data) };
  return { shape, dtype: "float32", read: async (start, count, signal) => apply(await readRows(source, start, count, signal)) };
}

/** All inputs as the network sees them. @param {Normalizations} normalizations @param {Record<string, ArraySource>} x by name */
export const normalizedInputs = (normalizations, x) => mapValues(x, (source, name) => normalized(Object.hasOwn(normalizations, name) ? normalizations[name] : undefined, source));

/** Mean and deviation of each column. */
class Moments {
  /** @param {number} columns */
  constructor(columns) {
    this.columns = columns;
    this.count = 0;
    this.mean = new Float64Array(columns);
    this.squares = new Float64Array(columns);
  }

  /** @param {Float32Array} values @param {(row: number) => boolean} counts whether a row of the window counts @param {number} width values of a row */
  add(values, counts, width) {
    const { columns } = this;
    const mean = new Float64Array(columns);
    const squares = new Float64Array(columns);
    let count = 0;
    for (let row = 0; row * width < values.length; row++) {
      if (!counts(row)) continue;
      count += width / columns;
      for (let i = row * width; i < (row + 1) * width; ) for (let c = 0; c < columns; c++) mean[c] += values[i++];
    }
    if (count === 0) return;
    for (let c = 0; c < columns; c++) mean[c] /= count;
    for (let row = 0; row * width < values.length; row++) {
      if (!counts(row)) continue;
      for (let i = row * width; i < (row + 1) * width; ) for (let c = 0; c < columns; c++) squares[c] += (values[i++] - mean[c]) ** 2;
    }
    const total = this.count + count;
    for (let c = 0; c < columns; c++) {
      const delta = mean[c] - this.mean[c];
      this.squares[c] += squares[c] + ((delta * this.count) / total) * delta * count;
      this.mean[c] += (delta * count) / total;
    }
    this.count = total;
  }

  result() {
    return { offset: this.mean, spread: this.squares.map((sum) => Math.sqrt(sum / this.count)) };
  }
}

/** Smallest value and extent of each column. */
class Range {
  /** @param {number} columns */
  constructor(columns) {
    this.low = new Float64Array(columns).fill(Infinity);
    this.high = new Float64Array(columns).fill(-Infinity);
  }

  /** @param {Float32Array} values @param {(row: number) => boolean} counts @param {number} width */
  add(values, counts, width) {
    const { low, high } = this;
    for (let row = 0; row * width < values.length; row++) {
      if (!counts(row)) continue;
      for (let i = row * width; i < (row + 1) * width; ) {
        for (let c = 0; c < low.length; c++, i++) {
          if (values[i] < low[c]) low[c] = values[i];
          if (values[i] > high[c]) high[c] = values[i];
        }
      }
    }
  }

  result() {
    return { offset: this.low, spread: this.high.map((value, c) => value - this.low[c]) };
  }
}

/** What an input's offset and scale are called in the weights; they are of no layer. @param {string} name of the input */
export const tensorNamesOf = (name) => [`${name}.offset`, `${name}.scale`];

/** As the weights file holds them, float64. @param {Normalizations} normalizations @returns {Record<string, {shape: number[], data: Float64Array}>} */
export function normalizationTensors(normalizations) {
  const tensors = Object.entries(normalizations).flatMap(([name, { offset, scale }]) => {
    return [offset, scale].map((data, i) => [tensorNamesOf(name)[i], { shape: [data.length], data }]);
  });
  return Object.fromEntries(tensors);
}

/** As JSON holds it: a number's shortest text is the number. @param {Normalization} normalization */
const recordOf = ({ kind, offset, scale }) => ({ ...(kind && { kind }), offset: [...offset], scale: [...scale] });

/**
 * As the record of a run shows it: that of the only input, or those of several by name; null where nothing is normalized.
 * @param {ModelInput} input @param {Normalizations} normalizations @returns {Recorded|Record<string, Recorded>|null}
 */
export const normalizationRecord = (input, normalizations) =>
  Object.keys(normalizations).length > 0 ? unnamed(input, mapValues(normalizations, recordOf)) : null;
