// Data: what the caller's arrays hold, and in which order each epoch takes the rows that train.
import { EngineError, isObject, shown } from "../errors.js";
import { size } from "../nn/graph.js";
import { arrayOf, dataField, fieldOf, named, shapesOf } from "../nn/inputs.js";
import { losses, lossType } from "../nn/losses.js";
import { RandomStream, STREAMS } from "../nn/random.js";
import { addressOf, eachWindow, readRows } from "./sources.js";

/** @import { Plan } from "../plan/plan.js" */
/** @import { ModelInput } from "../nn/inputs.js" */
/** @import { ArraySource } from "./sources.js" */

/** Inputs, targets, and where rows count differently [rows] weights of them; a model of several inputs gets them by name.
 * @typedef {{x: ArraySource|Record<string, ArraySource>, y: ArraySource, weight?: ArraySource}} Data */
/** The same with the inputs by name, whatever the model. @typedef {{x: Record<string, ArraySource>, y: ArraySource, weight?: ArraySource}} NamedData */
/** Called with each window of rows; throws data_invalid. @typedef {(firstRow: number, values: ArrayLike<number>) => void} Check */
/** What comes with each row: where it goes, where it comes from, and what must be true of it. @typedef {{tensor: string, source: ArraySource, check: Check}} Feed */

const bad = (/** @type {string} */ field, /** @type {string} */ message) => new EngineError("data_invalid", `${field}: ${message}`, { field });

const KEYS = ["x", "y", "weight"];

/**
 * Data as a caller gives them, with the inputs by name; of an estimate, their shapes. @template {{x: any}} T
 * @param {ModelInput} input @param {T} data @returns {Omit<T, "x"> & {x: Record<string, any>}}
 * @throws {EngineError} where there is anything else: weights under another name would otherwise count for nothing
 */
export function byName(input, data) {
  if (!isObject(data)) throw bad("data", `must be {x, y}, and weight where rows count differently, not ${shown(data)}`);
  const unknown = Object.keys(data).find((key) => !KEYS.includes(key));
  if (unknown) throw bad(`data.${unknown}`, `is unknown; legal: ${KEYS.join(", ")}`);
  return { ...data, x: named(input, data.x) };
}

/**
 * Whether data are arrays, each of its shape; whether the shapes fit each other and the model is for checkShapes().
 * @param {ModelInput} input @param {Data} data @returns {NamedData}
 * @throws {EngineError} data_invalid
 */
export function checkData(input, data) {
  const given = byName(input, data);
  checkSources(input, given.x);
  checkArray("data.y", given.y);
  if (given.weight !== undefined) checkArray("data.weight", given.weight);
  return given;
}

/** What the three kinds of source have besides their shape: how it is checked, and what it must be. @type {Record<string, {is: (value: any) => boolean, legal: string}>} */
const SOURCES = {
  data: { is: (value) => typeof value === "object" && Number.isInteger(value?.length) && typeof value[0] !== "bigint", legal: "an array of numbers" },
  read: { is: (value) => typeof value === "function", legal: "a function of (start, count), both in rows" },
  url: { is: isAddress, legal: "an address, as a string or a URL" },
};
const AT_URL = ["shape", "dtype", "url", "field"];

/** @param {unknown} url */
function isAddress(url) {
  try {
    return (typeof url === "string" || url instanceof URL) && addressOf(url) !== "";
  } catch {
    return false;
  }
}

/** @param {string} field for the message @param {any} source @throws {EngineError} where it is no array, or not of its shape */
export function checkArray(field, source) {
  const kinds = isObject(source) ? Object.keys(SOURCES).filter((kind) => kind in source) : [];
  if (kinds.length !== 1) throw bad(field, `must be {shape, data}, {shape, read(start, count)} or {shape, dtype, url}, not ${shown(source)}`);
  checkShape(field, source);
  const [kind] = kinds;
  const { is, legal } = SOURCES[kind];
  if (!is(source[kind])) throw bad(field, `its ${kind} is ${shown(source[kind])}; legal: ${legal}`);
  if (kind === "url") checkDescription(field, source);
  // `length` is that of data which stays in another thread.
  const length = "data" in source ? source.data.length : source.length;
  if (length !== undefined && length !== size(source.shape)) {
    throw bad(field, `has ${length} values; its shape [${source.shape}] needs ${size(source.shape)}`);
  }
}

/** @param {string} field @param {any} source @throws {EngineError} where it has no shape */
export function checkShape(field, source) {
  const lengths = source?.shape;
  if (!Array.isArray(lengths)) throw bad(field, `needs a shape, [rows, ...], not ${shown(lengths)}`);
  if (lengths.length === 0 || !lengths.every((length) => Number.isSafeInteger(length) && length >= 0)) throw bad(field, `its shape is ${shown(lengths)}; legal: whole numbers, rows first`);
}

/** The bytes at an address do not say what they are. @param {string} field @param {any} source */
function checkDescription(field, source) {
  const unknown = Object.keys(source).find((key) => !AT_URL.includes(key));
  if (unknown) throw bad(`${field}.${unknown}`, "is unknown; legal: shape, dtype, url");
  if (!["float32", "int32"].includes(source.dtype ?? "float32")) throw bad(field, `its dtype is ${shown(source.dtype)}; legal: float32, int32`);
}

/** @param {ModelInput} input @param {Record<string, any>} x by name @param {string} [of] where the caller gives them @throws {EngineError} where an input is no array, or not of its shape */
export function checkSources(input, x, of = "data.x") {
  const shapes = shapesOf(input);
  if (!isObject(x)) throw bad(of, `must be the arrays of the inputs by name, ${Object.keys(shapes).join(", ")}, not ${shown(x)}`);
  checkKnown(shapes, x, of);
  for (const name of Object.keys(shapes)) checkArray(dataField(name, of), x[name]);
}

/** A misspelt input would otherwise be one that is missing. @param {Record<string, number[]>} shapes @param {Record<string, any>} x @param {string} [of] */
function checkKnown(shapes, x, of = "data.x") {
  const unknown = Object.keys(x).find((name) => !Object.hasOwn(shapes, name));
  if (unknown) throw bad(`${of}.${unknown}`, `is no input of the model; legal: ${Object.keys(shapes).join(", ")}`);
}

/**
 * Whether these are the model's inputs, all of the same rows.
 * @param {any} spec @param {Record<string, {shape: number[]}>} x by name @param {{of?: string, least?: number}} [options] `of`: where the caller gives them
 * @returns {number} rows
 */
export function checkInputs({ model }, x, { of = "data.x", least = 1 } = {}) {
  const shapes = shapesOf(model.input);
  checkKnown(shapes, x, of);
  const [first] = Object.keys(shapes);
  for (const [name, shape] of Object.entries(shapes)) {
    const field = dataField(name, of);
    checkShape(field, x[name]);
    const [rows, ...sample] = x[name].shape;
    if (!(rows >= least)) throw bad(field, "is empty; at least one row is needed");
    if (sample.join() !== shape.join()) throw bad(field, `rows are [${sample}]; ${fieldOf(name)} is [${shape}]`);
    if (rows !== x[first].shape[0]) throw bad(field, `has ${rows} rows, ${dataField(first, of)} has ${x[first].shape[0]}`);
  }
  return x[first].shape[0];
}

/**
 * Checks shapes against the model.
 * @param {any} spec @param {{x: Record<string, {shape: number[]}>, y: {shape: number[]}}} data @param {number[]} outputShape
 * @returns {{rows: number, labels: "index"|"values"}}
 */
export function checkShapes(spec, { x, y }, outputShape) {
  const rows = checkInputs(spec, x);
  checkShape("data.y", y);
  if (y.shape[0] !== rows) throw bad("data.y", `has ${y.shape[0]} rows, ${dataField(Object.keys(x)[0])} has ${rows}`);
  const outputs = size(outputShape);
  const columns = size(y.shape.slice(1));
  if (lossType(spec) === "softmax_cross_entropy" && y.shape.length === 1) return { rows, labels: "index" };
  if (columns !== outputs) {
    const legal = lossType(spec) === "softmax_cross_entropy" ? `[${rows}] class numbers or [${rows}, ${outputs}] probabilities` : `[${rows}, ${outputs}]`;
    throw bad("data.y", `is [${y.shape}]; ${lossType(spec)} on ${outputs} outputs needs ${legal}`);
  }
  return { rows, labels: "values" };
}

/**
 * A check of numbers that are looked up; it passes all where there are none.
 * @param {string} field @param {number|undefined} vocabulary how many there are to look up
 * @returns {Check}
 */
function numberCheck(field, vocabulary) {
  if (vocabulary === undefined) return () => {};
  return (firstRow, values) => {
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (Number.isInteger(value) && value >= 0 && value < vocabulary) continue;
      throw bad(field, `value ${i} from row ${firstRow} is ${value}; embedding needs whole numbers from 0 to ${vocabulary - 1}`);
    }
  };
}

/** @param {string} field @returns {Check} */
const finiteCheck = (field) => (firstRow, values) => {
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(Math.fround(values[i]))) throw bad(field, `value ${i} from row ${firstRow} is ${values[i]}; legal: finite float32 numbers`);
  }
};

/** A check of an input's values. @param {string} field @param {number} [vocabulary] how many there are to look up, where they are @returns {Check} */
export function inputCheck(field, vocabulary) {
  const checks = [numberCheck(field, vocabulary), finiteCheck(field)];
  return (firstRow, values) => checks.forEach((check) => check(firstRow, values));
}

/** By which probabilities of a row may miss 1, as the service has it. */
const MOST_OFF_ONE = 1e-5;

/**
 * A check of targets.
 * @param {any} spec @param {"index"|"values"} labels @param {number} outputs
 * @returns {Check}
 */
export function targetCheck(spec, labels, outputs) {
  const classes = labels === "index" || lossType(spec) === "hinge";
  const legal = labels === "index" ? [0, outputs - 1] : losses[lossType(spec)].range;
  const finite = finiteCheck("data.y");
  const distributions = labels === "values" && lossType(spec) === "softmax_cross_entropy";
  return (firstRow, values) => {
    finite(firstRow, values);
    for (let i = 0; distributions && i < values.length; i += outputs) {
      let sum = 0;
      for (let n = 0; n < outputs; n++) sum += values[i + n];
      if (Math.abs(sum - 1) > MOST_OFF_ONE) throw bad("data.y", `row ${firstRow + i / outputs} sums to ${sum}; legal: probabilities that sum to 1, or a class number a row`);
    }
    for (let i = 0; legal && i < values.length; i++) {
      const value = values[i];
      if ((classes && !Number.isInteger(value)) || value < legal[0] || value > legal[1]) {
        throw bad("data.y", `value ${i} from row ${firstRow} is ${value}; legal: ${labels === "index" ? "class numbers" : classes ? "whole numbers" : "numbers"} from ${legal[0]} to ${legal[1]}`);
      }
    }
  };
}

/**
 * Inputs and targets; weights of rows, which are scaled first, are not among them.
 * @param {any} spec @param {Plan} plan @param {NamedData} data @param {"index"|"values"} labels
 * @returns {Feed[]}
 */
export function feedsOf(spec, { lookups, outputShape }, { x, y }, labels) {
  const inputs = Object.entries(x).map(([name, source]) => ({ tensor: arrayOf(name), source, check: inputCheck(dataField(name), lookups.get(arrayOf(name))) }));
  return [...inputs, { tensor: "target", source: y, check: targetCheck(spec, labels, size(outputShape)) }];
}

/** The checked values of some rows, by tensor. @param {Feed[]} feeds @param {number} first @param {number} count @returns {Promise<[string, ArrayLike<number>][]>} */
export async function readFeeds(feeds, first, count) {
  /** @type {[string, ArrayLike<number>][]} */
  const read = [];
  for (const { tensor, source, check } of feeds) {
    const values = await readRows(source, first, count);
    check(first, values);
    read.push([tensor, values]);
  }
  return read;
}

/**
 * The class of each row, for a stratified split: the class number, 0 or 1, or the first largest of a row's probabilities.
 * @param {any} spec @param {ArraySource} y @param {Check} check @param {AbortSignal} [signal]
 * @returns {Promise<Int32Array>} [rows]
 */
export async function readClasses(spec, y, check, signal) {
  const columns = size(y.shape.slice(1));
  if (columns > 1 && lossType(spec) !== "softmax_cross_entropy") throw bad("data.validation.stratify", `needs one class a row; data.y has ${columns} values a row`);
  const classes = new Int32Array(y.shape[0]);
  await eachWindow(y, (firstRow, values) => {
    check(firstRow, values);
    for (let row = 0; row < values.length / columns; row++) {
      let best = 0;
      for (let c = 1; c < columns; c++) if (values[row * columns + c] > values[row * columns + best]) best = c;
      const value = columns > 1 ? best : values[row];
      if (!Number.isInteger(value)) throw bad("data.validation.stratify", `needs one class a row; data.y is ${value} in row ${firstRow + row}`);
      classes[firstRow + row] = value;
    }
  }, signal);
  return classes;
}

/** Cuts the training rows into batches, epoch by epoch. */
export class Batches {
  /** @param {any} spec @param {ArrayLike<number>} train rows that train; their number is enough but for `order` */
  constructor(spec, train) {
    this.train = train;
    this.size = spec.train.batch_size ?? train.length;
    if (this.size > train.length) {
      throw new EngineError("spec_invalid", `train.batch_size: ${this.size} is more than the ${train.length} training rows`, { field: "train.batch_size" });
    }
    this.perEpoch = Math.ceil(train.length / this.size);
    // One batch that holds every row is the same set in any order.
    this.shuffled = spec.train.shuffle && this.perEpoch > 1;
    this.seed = spec.train.seed;
    /** Batches whose gradients make a step; the last step of an epoch may have fewer. */
    this.ofStep = spec.train.accumulate_steps ?? 1;
    this.stepsPerEpoch = Math.ceil(this.perEpoch / this.ofStep);
    this.totalSteps = spec.train.steps ?? spec.train.epochs * this.stepsPerEpoch;
    /** The order that was asked for last. */
    this.made = { epoch: -1, aligned: 0, order: new Int32Array(0) };
  }

  /**
   * The batches of a step, numbered through all epochs.
   * @param {number} step counted from 0 @returns {{first: number, count: number, rows: number}} `rows` of all of them
   */
  step(step) {
    const b = (step % this.stepsPerEpoch) * this.ofStep;
    const count = Math.min(this.ofStep, this.perEpoch - b);
    const end = Math.min((b + count) * this.size, this.train.length);
    return { first: Math.floor(step / this.stepsPerEpoch) * this.perEpoch + b, count, rows: end - b * this.size };
  }

  /** Samples of batch b of an epoch; the last may be short. @param {number} b */
  rows(b) {
    return Math.min(this.size, this.train.length - b * this.size);
  }

  /**
   * The order of an epoch, each batch padded to `aligned` rows.
   * @param {number} epoch from 0 @param {number} aligned
   * @returns {Int32Array} [perEpoch * aligned], -1 for padding
   */
  order(epoch, aligned) {
    if (this.made.epoch === epoch && this.made.aligned === aligned) return this.made.order;
    const place = this.shuffled ? new RandomStream(this.seed, STREAMS.shuffle, epoch).permutation(this.train.length) : null;
    const out = new Int32Array(this.perEpoch * aligned).fill(-1);
    for (let i = 0; i < this.train.length; i++) {
      out[Math.floor(i / this.size) * aligned + (i % this.size)] = this.train[place ? place[i] : i];
    }
    this.made = { epoch, aligned, order: out };
    return out;
  }
}
