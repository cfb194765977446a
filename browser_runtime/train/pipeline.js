// Pipeline: submits steps in chunks, so that the GPU always has one more to do, and turns what they report into points of the curve.
import { optimizers } from "../nn/optimizers.js";
import { learningRate } from "../nn/schedules.js";

/** @import { Executable, Sums } from "../backends/webgl2/executable.js" */
/** @import { Batches } from "./data.js" */

/** A point of the loss curve; `step` counts from 1, `loss` is that of the batch before the step's update.
 * @typedef {{step: number, loss?: number, val_loss?: number, val_accuracy?: number}} Point */

/** Steps whose losses stand in a line of the telemetry. @typedef {{line: number, first: number, count: number}} Flight */
/** Batches of validation rows in a line; `last` of those after a step. @typedef {{line: number, step: number, batches: number, last: boolean}} Pass */
/** What one chunk reports. @typedef {{flights: Flight[], passes: Pass[], train: Read|null, evaluate: Read|null}} Report */
/** @typedef {(line: number, slot: number) => Sums} Read */

const CHUNK_MS = 80; // telemetry is read about this often
/** Chunks submitted before the first of them is waited for. */
export const IN_FLIGHT = 2;

export class Pipeline {
  /** @param {{executable: Executable, spec: any, batches: Batches, validation: Int32Array}} parts */
  constructor({ executable, spec, batches, validation }) {
    this.executable = executable;
    this.spec = spec;
    this.batches = batches;
    this.validation = validation;
    this.accuracy = spec.metrics.includes("accuracy");
    this.step = 0;
    /** Steps of this pipeline, whatever `step` it began at. */
    this.steps = 0;
    this.glCallsPerStep = 0;
    this.countedSteps = 0;
    this.orderEpoch = -1;
    /** Rows validated since the last epoch ended; all of them where no validation is under way. */
    this.validated = validation.length;
    /** Sums of a validation of which only a part has been read. */
    this.sums = { loss: 0, correct: 0 };
    this.chunkSteps = 4;
    this.chunk = 0;
  }

  /** Goes on from another step. @param {number} step */
  restart(step) {
    this.step = step;
    this.orderEpoch = -1;
    this.validated = this.validation.length;
    this.sums = { loss: 0, correct: 0 };
  }

  /** Whether there is anything to submit before `target` is reached and validated. @param {number} target */
  wants(target) {
    return this.step < target || this.validated < this.validation.length;
  }

  /**
   * Submits a chunk, at least one step or one pass over validation rows, and starts reading what it reports.
   * @param {number} target
   * @returns {Promise<Report>}
   */
  submit(target) {
    const { executable, batches } = this;
    const lines = Math.floor(executable.telemetryLines / (IN_FLIGHT + 1));
    const firstLine = (this.chunk++ % (IN_FLIGHT + 1)) * lines;
    const end = Math.min(target, this.step + this.chunkSteps);
    /** @type {Flight[]} */
    const flights = [];
    /** @type {Pass[]} */
    const passes = [];
    while (flights.length < lines && passes.length < lines) {
      if (this.validated < this.validation.length) {
        passes.push(this.validate(firstLine + passes.length));
        continue;
      }
      if (this.step >= end) break;
      const count = this.flight(end);
      const line = firstLine + flights.length;
      executable.prepare(count);
      const calls = executable.glCalls;
      executable.submitTraining(count, line);
      // The longest flight says least of what belongs to the flight itself.
      if (count >= this.countedSteps) {
        this.glCallsPerStep = (executable.glCalls - calls) / count;
        this.countedSteps = count;
      }
      flights.push({ line, first: this.step + 1, count });
      this.step += count;
      this.steps += count;
      if (this.step % batches.perEpoch === 0 || this.step === batches.totalSteps) this.validated = 0;
    }
    return this.read(firstLine, flights, passes);
  }

  /** Gathers the batches of an epoch, unless they are there. @param {number} epoch */
  useEpoch(epoch) {
    const { executable, batches } = this;
    if (this.orderEpoch >= 0 && (!batches.shuffled || this.orderEpoch === epoch)) return;
    executable.setOrder("epoch", batches.order(epoch, executable.sizes.batch));
    this.orderEpoch = epoch;
  }

  /** Fills the scalars of the next flight. @param {number} end @returns {number} its steps */
  flight(end) {
    const { executable, batches, spec } = this;
    const { steps, sizes } = executable;
    this.useEpoch(Math.floor(this.step / batches.perEpoch));
    const epochMatters = batches.shuffled || this.validation.length > 0;
    const left = epochMatters ? batches.perEpoch - (this.step % batches.perEpoch) : Infinity;
    const count = Math.min(end - this.step, sizes.trainSlots, left);
    const { scalars } = optimizers[spec.optimizer.type];
    for (let i = 0; i < count; i++) {
      const b = (this.step + i) % batches.perEpoch;
      const rows = batches.rows(b);
      steps.set(i, rows, b * sizes.batch, 1 / rows, this.step + i);
      scalars(spec.optimizer, learningRate(spec.optimizer, this.step + i, batches.totalSteps), this.step + i + 1, steps.scalars[i]);
    }
    return count;
  }

  /** Submits as many validation rows as one line of telemetry holds. @param {number} line @returns {Pass} */
  validate(line) {
    const { stage, evaluateSlots } = this.executable.sizes;
    const rows = Math.min(stage * evaluateSlots, this.validation.length - this.validated);
    const batches = this.executable.submitEvaluation(this.validated, rows, line);
    this.validated += rows;
    return { line, step: this.step, batches, last: this.validated === this.validation.length };
  }

  /** Both reads are issued before either is awaited. @param {number} firstLine @param {Flight[]} flights @param {Pass[]} passes @returns {Promise<Report>} */
  async read(firstLine, flights, passes) {
    const [train, evaluate] = await Promise.all([
      flights.length > 0 ? this.executable.readTelemetry("train", firstLine, flights.length) : null,
      passes.length > 0 ? this.executable.readTelemetry("evaluate", firstLine, passes.length) : null,
    ]);
    return { flights, passes, train, evaluate };
  }

  /**
   * The points of a chunk; chunks must come in their order, since a validation may span several.
   * @param {Report} report
   * @returns {{points: Point[], broken: Point|undefined}} `broken`: the first whose loss is not finite
   */
  points({ flights, passes, train, evaluate }) {
    /** @type {Point[]} */
    const points = [];
    /** @type {Point|undefined} */
    let broken;
    for (const { line, first, count } of flights) {
      for (let i = 0; i < count; i++) {
        const { loss, finite } = /** @type {Read} */ (train)(line, i);
        const point = { step: first + i, loss };
        points.push(point);
        if (!finite) broken ??= point;
      }
    }
    for (const { line, step, batches, last } of passes) {
      for (let slot = 0; slot < batches; slot++) {
        const { loss, correct } = /** @type {Read} */ (evaluate)(line, slot);
        this.sums.loss += loss;
        this.sums.correct += correct;
      }
      if (!last) continue;
      const rows = this.validation.length;
      points.push({ step, val_loss: this.sums.loss / rows, ...(this.accuracy && { val_accuracy: this.sums.correct / rows }) });
      this.sums = { loss: 0, correct: 0 };
    }
    // By step, and a step's loss before the metrics that were taken after it, however the run was cut into chunks.
    return { points: points.sort((a, b) => a.step - b.step), broken };
  }

  /** Aims at chunks of CHUNK_MS. @param {number} steps @param {number} ms that they took */
  adapt(steps, ms) {
    if (steps === 0) return;
    const wanted = (CHUNK_MS * steps) / Math.max(ms, 0.5);
    this.chunkSteps = Math.max(1, Math.min(Math.round(wanted), this.chunkSteps * 4));
  }
}
