// Pipeline: submits steps in chunks, so that the GPU always has one more to do, and turns what they report into points of the curve.
import { asksFor, hostMetrics } from "../nn/metrics.js";
import { writeScalars } from "../nn/optimizers.js";
import { learningRate } from "../nn/schedules.js";
import { Measures } from "./metrics.js";

/** @import { Executable, Sums } from "../backends/webgl2/executable.js" */
/** @import { Batches } from "./data.js" */

/** A point of the curves; `step` counts from 1, `loss` is that of the batch before the step's update, `gradient_norm` that of its
 * gradient before it is limited, where it is measured. Metrics of the validation rows are named `val_<metric>`; a confusion matrix is the only one
 * that is no number.
 * @typedef {{step: number, loss?: number, gradient_norm?: number, val_loss?: number, val_accuracy?: number, [metric: `val_${string}`]: any}} Point */

/** Batches whose losses stand in a line of the telemetry, `first` of their steps, how many steps end among them, and which.
 * @typedef {{first: number, count: number, ends: boolean[]}} Flight */
/** Batches of validation rows in a line; `last` of those after a step. @typedef {{step: number, batches: number, last: boolean}} Pass */
/** Outputs and targets of a batch of validation rows. @typedef {{outputs: Float32Array, targets: Float32Array}} Evaluated */
/** What one chunk reports; `evaluated`: of each pass, the batches that metrics of the host are computed from.
 * @typedef {{flights: Flight[], passes: Pass[], train: Read|null, evaluate: Read|null, evaluated: Evaluated[][]}} Report */
/** @typedef {(line: number, slot: number) => Sums} Read */

const CHUNK_MS = 80; // telemetry is read about this often
const READ_VALUES = 4 << 20; // outputs and targets that are on their way to the host at once

export class Pipeline {
  /**
   * @param {{executable: Executable, feeder: ReturnType<typeof import("./feeder.js").feederFor>, spec: any, batches: Batches, validation: Int32Array,
   *   validationWeight?: number, outputs: number, labels: "index"|"values"}} parts `validationWeight`: sum of what the validation rows count for; `outputs`: numbers of a row
   */
  constructor({ executable, feeder, spec, batches, validation, validationWeight, outputs, labels }) {
    this.executable = executable;
    this.feeder = feeder;
    this.spec = spec;
    this.batches = batches;
    this.validation = validation;
    this.validationWeight = validationWeight ?? validation.length;
    /** Steps between validations, besides those after each epoch. */
    this.every = (validation.length > 0 && spec.train?.evaluate_every) || Number.MAX_SAFE_INTEGER;
    this.outputs = outputs;
    this.labels = labels;
    this.accuracy = asksFor(spec, "accuracy");
    /** Whether outputs come to the host. */
    this.measures = hostMetrics(spec).length > 0;
    this.step = 0;
    /** Batches of the step under way that were submitted, and what they reported. */
    this.submitted = 0;
    this.partial = { loss: 0, finite: true };
    /** Steps of this pipeline, whatever `step` it began at. */
    this.steps = 0;
    this.glCallsPerStep = 0;
    this.countedSteps = 0;
    /** Rows validated since the last epoch ended; all of them where no validation is under way. */
    this.validated = validation.length;
    /** Of a validation of which only a part has been read. */
    this.sums = this.begin(validation.length);
    /** Ends a chunk after each validation, so that what follows from it is known before another step is taken. */
    this.waits = false;
    /** Whether the last chunk ended a validation. */
    this.justValidated = false;
    this.chunkSteps = 4;
  }

  /** Whether a validation of the weights as they are has begun, and not all of its rows were submitted. */
  get validating() {
    return this.validated < this.validation.length;
  }

  /** Goes on from another step. @param {number} step @param {boolean} validating whether with its validation */
  restart(step, validating) {
    this.step = step;
    this.submitted = 0;
    this.partial = { loss: 0, finite: true };
    this.validated = validating ? 0 : this.validation.length;
    this.sums = this.begin(this.validation.length);
  }

  /** Weights have changed: a validation of which a part was submitted begins anew. */
  validateAnew() {
    if (!this.validating) return;
    this.validated = 0;
    this.sums = this.begin(this.validation.length);
  }

  /** Nothing summed yet, of so many rows. @param {number} rows @param {number} [weight] what they count for in the loss */
  begin(rows, weight = this.validationWeight) {
    return { rows, weight, loss: 0, correct: 0, measures: this.measures ? new Measures(this.spec, { rows, outputs: this.outputs, labels: this.labels }) : null };
  }

  /** Whether there is anything to submit before `target` is reached and validated. @param {number} target */
  wants(target) {
    return this.step < target || this.validating;
  }

  /**
   * Submits a chunk, at least one step or one pass over validation rows, and starts reading what it reports.
   * @param {number} target
   * @returns {Promise<Report>}
   */
  submit(target) {
    const { executable, batches } = this;
    // Every chunk has all of them: its read is a command before those of the next one.
    const lines = executable.telemetryLines;
    const end = Math.min(target, this.step + this.chunkSteps);
    this.justValidated = false;
    /** @type {Flight[]} */
    const flights = [];
    /** @type {Pass[]} */
    const passes = [];
    /** @type {Promise<Evaluated>[][]} */
    const evaluated = [];
    // Outputs are on their way to the host a pass at a time: what is in memory is bounded.
    const mostPasses = this.measures ? 1 : lines;
    while (flights.length < lines && passes.length < mostPasses) {
      if (this.validating) {
        passes.push(this.validate(passes.length, evaluated));
        this.justValidated = !this.validating;
        if (this.waits && this.justValidated) break;
        continue;
      }
      if (this.step >= end) break;
      const ends = this.flight(end);
      const count = ends.filter(Boolean).length;
      executable.prepare(ends.length);
      const calls = executable.glCalls;
      executable.submitTraining(ends.length, flights.length);
      // The GPU process has run out of commands while the last chunk was read: it need not wait for the whole of this one.
      if (flights.length === 0) executable.flush();
      // The longest flight says least of what belongs to the flight itself.
      if (count > 0 && count >= this.countedSteps) {
        this.glCallsPerStep = (executable.glCalls - calls) / count;
        this.countedSteps = count;
      }
      flights.push({ first: this.step + 1, count, ends });
      this.step += count;
      this.steps += count;
      if (count === 0) continue;
      if (this.step % batches.stepsPerEpoch === 0 || this.step % this.every === 0 || this.step === batches.totalSteps) this.validated = 0;
    }
    return this.read(flights, passes, evaluated);
  }

  /** Fills the scalars of the next flight. @param {number} end @returns {boolean[]} of its batches, which end a step */
  flight(end) {
    const { executable, feeder, batches, spec } = this;
    const { steps, sizes } = executable;
    // A flight ends with an epoch where epochs matter, and before a validation.
    const { stepsPerEpoch } = batches;
    const epoch = batches.shuffled || this.validation.length > 0 ? stepsPerEpoch - (this.step % stepsPerEpoch) : Infinity;
    const last = this.step + Math.min(end - this.step, epoch, this.every - (this.step % this.every));
    const most = Math.min(sizes.trainSlots, feeder.span);
    /** @type {boolean[]} */
    const ends = [];
    for (let step = this.step; step < last && ends.length < most; ) {
      const { first, count, rows } = batches.step(step);
      const number = first + this.submitted;
      const i = ends.length;
      ends.push(++this.submitted === count);
      steps.set(i, batches.rows(number % batches.perEpoch), feeder.place(number), 1 / rows, number, ends[i]);
      writeScalars(spec, learningRate(spec.optimizer, step, batches.totalSteps), step + 1, steps.scalars[i], number > first);
      if (!ends[i]) continue;
      this.submitted = 0;
      step += 1;
    }
    return ends;
  }

  /**
   * Submits as many validation rows as one line of telemetry holds, and as may be read at once.
   * @param {number} line @param {Promise<Evaluated>[][]} evaluated those of this pass are added
   * @returns {Pass}
   */
  validate(line, evaluated) {
    const { executable, outputs, measures } = this;
    const { stage, evaluateSlots } = executable.sizes;
    const most = measures ? Math.max(1, Math.min(evaluateSlots, Math.floor(READ_VALUES / (2 * stage * outputs)))) : evaluateSlots;
    const rows = Math.min(stage * most, this.validation.length - this.validated);
    /** @type {Promise<Evaluated>[]} */
    const reads = [];
    const after = measures ? (/** @type {number} */ count) => void reads.push(executable.evaluator.readOutputs(count)) : undefined;
    const batches = this.feeder.evaluate(this.validated, rows, line, after);
    evaluated.push(reads);
    this.validated += rows;
    return { step: this.step, batches, last: !this.validating };
  }

  /**
   * All reads are issued before any is awaited.
   * @param {Flight[]} flights @param {Pass[]} passes @param {Promise<Evaluated>[][]} reads
   * @returns {Promise<Report>}
   */
  async read(flights, passes, reads) {
    const [train, evaluate, evaluated] = await Promise.all([
      flights.length > 0 ? this.executable.readTelemetry("train", flights.length) : null,
      passes.length > 0 ? this.executable.readTelemetry("evaluate", passes.length) : null,
      Promise.all(reads.map((pass) => Promise.all(pass))),
    ]);
    // Telemetry proves itself; that these are real is proved by a number that comes back.
    if (evaluated.flat().length > 0) this.executable.tensors.checkAlive();
    return { flights, passes, train, evaluate, evaluated };
  }

  /**
   * The points of a chunk; chunks must come in their order, since a validation may span several.
   * @param {Report} report
   * @returns {{points: Point[], broken: Point|undefined}} `broken`: the first whose loss is not finite
   */
  points({ flights, passes, train, evaluate, evaluated }) {
    /** @type {Point[]} */
    const points = [];
    /** @type {Point|undefined} */
    let broken;
    flights.forEach(({ first, ends }, line) => {
      let step = first;
      ends.forEach((ended, i) => {
        // Each batch has its part of the mean over the step's rows.
        const { loss, finite, norm } = /** @type {Read} */ (train)(line, i);
        this.partial.loss += loss;
        this.partial.finite &&= finite;
        if (!ended) return;
        const point = { step: step++, loss: this.partial.loss, ...(norm !== undefined && { gradient_norm: norm }) };
        points.push(point);
        if (!this.partial.finite) broken ??= point;
        this.partial = { loss: 0, finite: true };
      });
    });
    passes.forEach(({ step, batches, last }, line) => {
      for (let slot = 0; slot < batches; slot++) this.count(this.sums, /** @type {Read} */ (evaluate)(line, slot), evaluated[line][slot]);
      if (!last) return;
      const measured = Object.entries(this.summary(this.sums)).map(([name, value]) => [`val_${name}`, value]);
      points.push({ step, ...Object.fromEntries(measured) });
      this.sums = this.begin(this.validation.length);
    });
    // By step, and a step's loss before the metrics that were taken after it, however the run was cut into chunks.
    return { points: points.sort((a, b) => a.step - b.step), broken };
  }

  /** Adds a batch. @param {ReturnType<Pipeline["begin"]>} sums @param {Sums} batch @param {Evaluated|undefined} evaluated */
  count(sums, { loss, correct }, evaluated) {
    sums.loss += loss;
    sums.correct += correct;
    if (evaluated) sums.measures?.add(evaluated.outputs, evaluated.targets);
  }

  /** Loss and metrics, once all rows are there. @param {ReturnType<Pipeline["begin"]>} sums @returns {{loss: number, accuracy?: number, [metric: string]: any}} */
  summary({ rows, weight, loss, correct, measures }) {
    return { loss: loss / weight, ...(this.accuracy && { accuracy: correct / rows }), ...measures?.result() };
  }

  /** Aims at chunks of CHUNK_MS. @param {number} steps @param {number} ms that they took */
  adapt(steps, ms) {
    if (steps === 0) return;
    const wanted = (CHUNK_MS * steps) / Math.max(ms, 0.5);
    this.chunkSteps = Math.max(1, Math.min(Math.round(wanted), this.chunkSteps * 4));
  }
}
