// Split: which rows of a data set train and which validate. The rule is that of docs/page-protocol.md, in Python texelgrad/splits.py.
import { EngineError } from "../errors.js";
import { RandomStream, STREAMS } from "../nn/random.js";

/** @typedef {{fraction: number, stratify: boolean, rows: (number|[number, number])[]|null}} Validation */
/** Row numbers, in the order in which they are taken. @typedef {{train: Int32Array, validation: Int32Array}} Split */

const NONE = { fraction: 0, stratify: false, rows: null };

const bad = (/** @type {string} */ field, /** @type {string} */ message) => new EngineError("data_invalid", `data.validation.${field}: ${message}`, { field: `data.validation.${field}` });

/** @param {any} spec @returns {Validation} */
const validationOf = (spec) => spec.data?.validation ?? NONE;

/** The named rows as [first, stop) each. @param {Validation} validation @returns {[number, number][]} */
const rangesOf = ({ rows }) => (rows ?? []).map((item) => (typeof item === "number" ? [item, item + 1] : item));

/** Whether the split needs the class of each row. @param {any} spec */
export const isStratified = (spec) => validationOf(spec).stratify;

/** The least fraction that keeps a row, in millionths, as the service says it. @param {number} rows at least 2 */
function leastShare(rows) {
  let part = Math.floor(1e6 / rows);
  while (rows * (part / 1e6) < 1) part++;
  return part / 1e6;
}

/**
 * How many rows train and how many validate: nothing depends on what is in them.
 * @param {any} spec @param {number} rows
 * @returns {{train: number, validation: number}}
 * @throws {EngineError} data_invalid where a named row does not exist, none is left to train on, or a fraction keeps none for validation
 */
export function splitSizes(spec, rows) {
  const validation = validationOf(spec);
  const ranges = rangesOf(validation);
  const outside = ranges.findIndex(([, stop]) => stop > rows);
  if (outside >= 0) throw bad(`rows.${outside}`, `names row ${ranges[outside][1] - 1} of ${rows}; legal: 0 to ${rows - 1}`);
  const kept = validation.rows ? ranges.reduce((sum, [first, stop]) => sum + stop - first, 0) : Math.floor(rows * validation.fraction);
  if (kept >= rows) throw bad(validation.rows ? "rows" : "fraction", `${validation.rows ? kept : validation.fraction} of ${rows} rows leaves none to train on`);
  if (kept === 0 && validation.fraction > 0) {
    const legal = rows > 1 ? `0, or at least ${leastShare(rows)}` : "0";
    throw bad("fraction", `keeps none of ${rows} rows for validation: ${rows} * ${validation.fraction} is below 1; legal: ${legal}`);
  }
  return { train: rows - kept, validation: kept };
}

/**
 * The rows of the data set that train and those that validate.
 * @param {any} spec @param {number} rows @param {Int32Array|null} [classes] [rows], where `isStratified`
 * @returns {Split}
 */
export function split(spec, rows, classes = null) {
  const { fraction, stratify, rows: named } = validationOf(spec);
  const sizes = splitSizes(spec, rows);
  if (named) {
    const validates = new Uint8Array(rows);
    for (const [first, stop] of rangesOf(validationOf(spec))) validates.fill(1, first, stop);
    return partition(Int32Array.from(validates.keys()), validates, sizes);
  }
  if (fraction === 0) return { train: Int32Array.from({ length: rows }, (_, i) => i), validation: new Int32Array(0) };
  const order = Int32Array.from(new RandomStream(spec.train.seed, STREAMS.split).permutation(rows));
  if (!stratify) return { train: order.slice(0, sizes.train), validation: order.slice(sizes.train) };
  return partition(order, stratified(order, /** @type {Int32Array} */ (classes), sizes.validation), sizes);
}

/**
 * Marks every rows / kept th row, class by class: each class gives its share, rounded down or up, and all together `kept`.
 * @param {Int32Array} order @param {Int32Array} classes @param {number} kept
 * @returns {Uint8Array} [rows] by place in `order`
 */
function stratified(order, classes, kept) {
  const rows = order.length;
  /** Where each class's rows begin when they are put class by class. @type {Map<number, number>} */
  const next = new Map();
  for (const number of classes) next.set(number, (next.get(number) ?? 0) + 1);
  let begin = 0;
  for (const number of [...next.keys()].sort((a, b) => a - b)) {
    const count = /** @type {number} */ (next.get(number));
    next.set(number, begin);
    begin += count;
  }
  const places = new Int32Array(rows);
  for (let place = 0; place < rows; place++) {
    const at = /** @type {number} */ (next.get(classes[order[place]]));
    places[at] = place;
    next.set(classes[order[place]], at + 1);
  }
  const validates = new Uint8Array(rows);
  // Whole numbers below 2^53, so that the quotients are exact.
  for (let i = 0; i < rows; i++) validates[places[i]] = Math.floor(((i + 1) * kept) / rows) - Math.floor((i * kept) / rows);
  return validates;
}

/** @param {Int32Array} order @param {Uint8Array} validates by place in `order` @param {{train: number, validation: number}} sizes @returns {Split} */
function partition(order, validates, sizes) {
  const out = { train: new Int32Array(sizes.train), validation: new Int32Array(sizes.validation) };
  let [train, validation] = [0, 0];
  order.forEach((row, place) => {
    if (validates[place]) out.validation[validation++] = row;
    else out.train[train++] = row;
  });
  return out;
}
