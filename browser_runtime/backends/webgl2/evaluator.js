// Evaluator: what an executable runs beside training: it gathers rows of the data set, evaluates them and predicts.
import { fedAt, orderAt, OUTPUTS } from "./places.js";
import { Steps } from "./steps.js";

/** @import { Dispatch } from "./dispatch.js" */
/** @import { Executable } from "./executable.js" */

export class Evaluator {
  /** @param {Executable} executable of which it is a part */
  constructor(executable) {
    this.executable = executable;
    this.tensors = executable.tensors;
    this.sizes = executable.sizes;
    this.steps = new Steps(executable.gl, this.sizes.evaluateSlots);
    /** @type {{gather: Dispatch[], evaluate: Dispatch[], predict: Dispatch[]}|undefined} */
    this.made = undefined;
  }

  /** Its dispatches, made when they are first asked for. */
  get dispatches() {
    const { executable } = this;
    const { phases, gathers } = executable.lowered;
    return (this.made ??= {
      gather: executable.all(gathers.stage),
      evaluate: executable.all(phases.evaluate.flat()),
      predict: executable.all(phases.predict.flat()),
    });
  }

  /**
   * Sets the order of the epoch's batches or of the evaluated rows, and gathers the epoch.
   * @param {"epoch"|"stage"} to @param {Int32Array} order row numbers, -1 for padding
   */
  setOrder(to, order) {
    const { executable, tensors } = this;
    executable.enter();
    const { slots } = tensors.place(orderAt(to));
    tensors.upload(slots[0], 0, order);
    if (to === "epoch") this.runOnce(executable.all(executable.lowered.gathers.epoch), 0);
  }

  /**
   * Submits an evaluation of rows of the data set, in the order given to `setOrder("stage", ...)`, or written by the caller.
   * @param {number} first first row of that order, a multiple of sizes.stage
   * @param {number} rows at most sizes.stage * sizes.evaluateSlots
   * @param {number} line of the telemetry
   * @param {{write?: (first: number, rows: number) => void, after?: (rows: number) => void}} [hooks] `write`: writes these rows into the staging
   *   tensors; `after`: called after the draws of each batch, whose staging rows are still there
   * @returns {number} batches
   */
  submit(first, rows, line, { write, after } = {}) {
    const { executable, steps } = this;
    executable.enter();
    const { stage } = this.sizes;
    const { gather, evaluate } = this.dispatches;
    const batches = Math.ceil(rows / stage);
    const rowsOf = (/** @type {number} */ i) => Math.min(stage, rows - i * stage);
    for (let i = 0; i < batches; i++) steps.set(i, rowsOf(i), first + i * stage, 1);
    steps.upload(batches);
    for (let i = 0; i < batches; i++) {
      write?.(first + i * stage, rowsOf(i));
      steps.bind(i);
      executable.run(gather, i);
      executable.run(evaluate, i);
      after?.(rowsOf(i));
    }
    executable.reduce("evaluate", line);
    return batches;
  }

  /**
   * The network's outputs for the staging rows that were just evaluated, and their targets, read without stalling.
   * @param {number} rows
   * @returns {Promise<{outputs: Float32Array, targets: Float32Array}>} [rows, columns] each
   */
  async readOutputs(rows) {
    this.executable.run(this.dispatches.predict, 0);
    const reads = [OUTPUTS, fedAt("stage", "target")].map((name) => this.tensors.readTensorLater(name, rows));
    const [outputs, targets] = await Promise.all(reads);
    return { outputs, targets };
  }

  /** Evaluates the rows that were uploaded to the staging tensors. @param {number} rows */
  submitStaged(rows) {
    this.executable.enter();
    this.runOnce(this.dispatches.evaluate, rows);
    this.executable.reduce("evaluate", 0);
  }

  /** Predicts the rows that were uploaded to the staging tensors. @param {number} rows @returns {Float32Array} [rows, outputs] */
  predictStaged(rows) {
    this.executable.enter();
    this.runOnce(this.dispatches.predict, rows);
    const { data } = this.tensors.readTensor(OUTPUTS);
    return data.subarray(0, rows * this.tensors.place(OUTPUTS).layout.columns);
  }

  /** @param {Dispatch[]} dispatches @param {number} rows of the only batch */
  runOnce(dispatches, rows) {
    this.steps.set(0, rows, 0, 1);
    this.steps.upload(1);
    this.steps.bind(0);
    this.executable.run(dispatches, 0);
  }

  dispose() {
    this.steps.dispose();
  }
}
