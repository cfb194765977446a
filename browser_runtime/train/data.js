// Data: what the caller's arrays hold, and in which order each epoch takes the rows that train.
import { EngineError } from "../errors.js";
import { losses, lossType } from "../nn/losses.js";
import { RandomStream, STREAMS } from "../nn/random.js";
import { eachWindow, size } from "./sources.js";

/** @import { ArraySource } from "./sources.js" */

const bad = (/** @type {string} */ field, /** @type {string} */ message) => new EngineError("data_invalid", `${field}: ${message}`, { field });

/** @param {string} field for the message @param {any} source @throws {EngineError} where it is no array, or not of its shape */
export function checkArray(field, source) {
  if (!source || !Array.isArray(source.shape) || !("data" in source || "read" in source || "url" in source)) {
    throw bad(field, "must be {shape, data}, {shape, read(start, count)} or {shape, dtype, url}");
  }
  // The bytes at an address do not say what they are.
  if ("url" in source && !["float32", "int32"].includes(source.dtype ?? "float32")) throw bad(field, `its dtype is ${source.dtype}; legal: float32, int32`);
  // `length` is that of data which stays in another thread.
  const length = "data" in source ? source.data?.length : source.length;
  if (("data" in source || "length" in source) && length !== size(source.shape)) {
    throw bad(field, `has ${length} values; its shape [${source.shape}] needs ${size(source.shape)}`);
  }
}

/**
 * Checks shapes against the model.
 * @param {any} spec @param {{x: {shape: number[]}, y: {shape: number[]}}} data @param {number[]} outputShape
 * @returns {{rows: number, labels: "index"|"values"}}
 */
export function checkShapes(spec, { x, y }, outputShape) {
  for (const [field, array] of /** @type {const} */ ([["data.x", x], ["data.y", y]])) {
    if (!Array.isArray(array?.shape)) throw bad(field, "needs a shape, [rows, ...]");
  }
  const rows = x.shape[0];
  if (!(rows >= 1)) throw bad("data.x", "is empty; at least one row is needed");
  const sample = x.shape.slice(1);
  if (sample.join() !== spec.model.input.join()) throw bad("data.x", `rows are [${sample}]; model.input is [${spec.model.input}]`);
  if (y.shape[0] !== rows) throw bad("data.y", `has ${y.shape[0]} rows, data.x has ${rows}`);
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
 * A checker of inputs that embeddings look up; it passes all where there is none.
 * @param {any} spec
 * @returns {(field: string, firstRow: number, values: ArrayLike<number>) => void} throws data_invalid
 */
export function numberCheck(spec) {
  const embeddings = (spec.model?.layers ?? []).filter((/** @type {any} */ layer) => layer.type === "embedding");
  const least = Math.min(...embeddings.map((/** @type {any} */ layer) => layer.vocabulary));
  if (embeddings.length === 0) return () => {};
  return (field, firstRow, values) => {
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (Number.isInteger(value) && value >= 0 && value < least) continue;
      throw bad(field, `value ${i} from row ${firstRow} is ${value}; embedding needs whole numbers from 0 to ${least - 1}`);
    }
  };
}

/**
 * A checker of values for one array, called with each window.
 * @param {"x"|"y"} name @param {any} spec @param {"index"|"values"} labels @param {number} outputs
 * @returns {(firstRow: number, values: ArrayLike<number>) => void}
 */
export function valueCheck(name, spec, labels, outputs) {
  const field = `data.${name}`;
  const legal = name === "x" ? undefined : labels === "index" ? [0, outputs - 1] : losses[lossType(spec)].range;
  const checkNumbers = name === "x" ? numberCheck(spec) : () => {};
  return (firstRow, values) => {
    checkNumbers(field, firstRow, values);
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (!Number.isFinite(Math.fround(value))) throw bad(field, `value ${i} from row ${firstRow} is ${value}; only finite float32 numbers can be trained on`);
      if (!legal) continue;
      const whole = !(labels === "index" || lossType(spec) === "hinge") || Number.isInteger(value);
      if (!whole || value < legal[0] || value > legal[1]) {
        throw bad(field, `value ${i} from row ${firstRow} is ${value}; legal: ${labels === "index" ? "class numbers" : "numbers"} from ${legal[0]} to ${legal[1]}`);
      }
    }
  };
}

/**
 * The class of each row, for a stratified split: the class number, 0 or 1, or the first largest of a row's probabilities.
 * @param {any} spec @param {ArraySource} y @param {(firstRow: number, values: ArrayLike<number>) => void} check @param {AbortSignal} [signal]
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
