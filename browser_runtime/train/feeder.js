// Feeder: brings rows to where the steps read them. Small data lies in textures, from which an epoch is gathered in one draw; larger data stays
// in this thread's memory, and its batches go through a ring of places, so that some are uploaded while others are trained on.
import { orderAt } from "../backends/webgl2/places.js";
import { Held } from "./held.js";

/** @import { Executable } from "../backends/webgl2/executable.js" */
/** @import { Batches } from "./data.js" */

/** Of what comes with the data: x, target, weights of rows. @typedef {string} Name */

/**
 * Numbers of a data set up to which its first epoch is put in order in this thread, from a copy that is dropped then: the programs that gather it
 * on the device, which take longer to compile than these to copy, need not be waited for.
 */
const FEW_NUMBERS = 2 ** 18;

/**
 * @param {Executable} executable @param {Batches} batches @param {Int32Array} validation
 * @returns {ResidentFeeder|StreamedFeeder}
 */
export function feederFor(executable, batches, validation) {
  return executable.lowered.streamed ? new StreamedFeeder(executable, batches, validation) : new ResidentFeeder(executable, batches, validation);
}

/** The data set is in textures. */
class ResidentFeeder {
  /** @param {Executable} executable @param {Batches} batches @param {Int32Array} validation */
  constructor(executable, batches, validation) {
    this.executable = executable;
    this.batches = batches;
    this.validation = validation;
    this.epoch = -1;
    const { fed } = executable.lowered;
    const total = batches.train.length + validation.length;
    const numbers = fed.reduce((sum, name) => sum + total * executable.tensors.columns(name), 0);
    /** The copy for the first epoch. @type {Record<Name, Held>|null} */
    this.held = numbers <= FEW_NUMBERS ? Object.fromEntries(fed.map((name) => [name, new Held(total, executable.tensors.columns(name))])) : null;
    /** Steps whose batches are there at once: all of an epoch. */
    this.span = Infinity;
  }

  /** Takes rows of the data set. @param {Name} name @param {number} firstRow @param {ArrayLike<number>} values */
  write(name, firstRow, values) {
    this.executable.tensors.writeData(name, firstRow, values);
    this.held?.[name].write(firstRow, values);
  }

  /** All rows are here. */
  complete() {
    if (this.validation.length === 0) return;
    const order = new Int32Array(this.executable.tensors.place(orderAt("stage")).layout.rows).fill(-1);
    order.set(this.validation);
    this.executable.evaluator.setOrder("stage", order);
  }

  /** Makes sure that the batch of a step is where it can be trained on. @param {number} step counted from 0 @returns {number} its first row there */
  place(step) {
    const { executable, batches } = this;
    const epoch = Math.floor(step / batches.perEpoch);
    if (this.epoch < 0 || (batches.shuffled && this.epoch !== epoch)) {
      const order = batches.order(epoch, executable.sizes.batch);
      if (this.held) for (const [name, held] of Object.entries(this.held)) executable.tensors.writeEpoch(name, 0, held.gather(order));
      else executable.evaluator.setOrder("epoch", order);
      this.held = null;
      this.epoch = epoch;
    }
    return (step % batches.perEpoch) * executable.sizes.batch;
  }

  /** Submits an evaluation of validation rows. @param {number} first @param {number} rows @param {number} line @param {(rows: number) => void} [after] each batch @returns {number} batches */
  evaluate(first, rows, line, after) {
    return this.executable.evaluator.submit(first, rows, line, { after });
  }
}

/** The data set is in this thread's memory. */
class StreamedFeeder {
  /** @param {Executable} executable @param {Batches} batches @param {Int32Array} validation */
  constructor(executable, batches, validation) {
    this.executable = executable;
    this.batches = batches;
    this.validation = validation;
    const { ring } = executable.sizes;
    /** Which batch lies in each place of the ring. */
    this.placed = new Int32Array(ring).fill(-1);
    // Half of the ring, so that what is uploaded next is not what is being read.
    this.span = Math.max(1, ring >> 1);
    const total = batches.train.length + validation.length;
    /** @type {Record<Name, Held>} */
    this.held = Object.fromEntries(executable.lowered.fed.map((name) => [name, new Held(total, executable.tensors.columns(name))]));
  }

  /** @param {Name} name @param {number} firstRow @param {ArrayLike<number>} values */
  write(name, firstRow, values) {
    this.held[name].write(firstRow, values);
  }

  complete() {}

  /** @param {number} step counted from 0 @returns {number} first row of its batch in the ring */
  place(step) {
    const { executable, batches, placed } = this;
    const { batch } = executable.sizes;
    const b = step % batches.perEpoch;
    const number = batches.shuffled ? step : b;
    const place = step % placed.length;
    if (placed[place] !== number) {
      const order = batches.order(Math.floor(step / batches.perEpoch), batch).subarray(b * batch, b * batch + batches.rows(b));
      for (const name of executable.lowered.fed) executable.tensors.writeEpoch(name, place * batch, this.held[name].gather(order));
      placed[place] = number;
    }
    return place * batch;
  }

  /** @param {number} first @param {number} rows @param {number} line @param {(rows: number) => void} [after] each batch @returns {number} batches */
  evaluate(first, rows, line, after) {
    const { executable, held, validation } = this;
    const write = (/** @type {number} */ from, /** @type {number} */ count) => {
      const order = validation.subarray(from, from + count);
      for (const name of executable.lowered.fed) executable.tensors.writeStage(name, held[name].gather(order));
    };
    return executable.evaluator.submit(first, rows, line, { write, after });
  }
}
