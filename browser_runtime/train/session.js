// Session: one training run on one device, compiled once and replayed. Runs in the thread that owns the GL context.
import { EngineError } from "../errors.js";
import { ROW_WEIGHT } from "../nn/model.js";
import { validateSpec } from "../nn/spec.js";
import { Executable } from "../backends/webgl2/executable.js";
import { lower } from "../backends/webgl2/lower.js";
import { beginning, normalizationOf } from "./beginning.js";
import { Batches, checkArray, checkShapes, numberCheck, readClasses, valueCheck } from "./data.js";
import { diagnose, FIRST_LOSSES } from "./diagnostics.js";
import { EarlyStopping } from "./early_stopping.js";
import { countRows, planFor } from "./estimate.js";
import { feederFor } from "./feeder.js";
import { fit, normalizationRecord, normalizationTensors, normalized } from "./normalization.js";
import { IN_FLIGHT, Pipeline } from "./pipeline.js";
import { placeholder, withoutTraining } from "./predicting.js";
import { checkRowWeights, checkRowWeightValues, scaledRowWeights, sumOf } from "./row_weights.js";
import { decode, encode } from "./safetensors.js";
import { buffered, eachWindow, nearby, readRows } from "./sources.js";
import { isStratified, split } from "./split.js";
import { checkWeights, countParameters, readWeights, seededWeights, tensorNames, writeWeights } from "./weights.js";

/** @import { Device } from "../backends/webgl2/device.js" */
/** @import { Plan } from "../plan/plan.js" */
/** @import { ArraySource } from "./sources.js" */
/** @import { Normalization } from "./normalization.js" */
/** @import { Point, Report } from "./pipeline.js" */
/** @import { Weights } from "./weights.js" */

/** What a run ran on and what it cost; bytes of this run's textures. `validation`: step and metrics of the last validation, or of the one whose
 * weights were restored.
 * @typedef {{validation: Point|null, early_stopping: import("./early_stopping.js").StoppingRecord|null, backend: string, renderer: string, software: boolean, planKey: string, parameters: number, drawsPerStep: number, glCallsPerStep: number,
 *   plannedTextureBytes: number, peakTextureBytes: number, textures: number,
 *   normalization: {kind?: string, offset: number[], scale: number[]}|null,
 *   timings: {compileMs: number, uploadMs: number, firstStepMs: number, trainMs: number, steps: number}}} RunRecord */

/** Inputs, targets, and where rows count differently [rows] weights of them. @typedef {{x: ArraySource, y: ArraySource, weight?: ArraySource}} Data */

/** Before the names of the best validation's weights in a checkpoint. */
const BEST = "best/";

export class Session {
  /**
   * Validates, plans, compiles, uploads the data and the initial weights.
   * @param {Device} device
   * @param {any} input the job spec
   * @param {{data?: Data, initialWeights?: Weights|Uint8Array, signal?: AbortSignal}} options `data` may be left out
   *   where the spec only predicts
   */
  static async compile(device, input, { data, initialWeights, signal }) {
    const started = performance.now();
    const validated = validateSpec(input);
    const spec = validated.predict ? withoutTraining(validated) : validated;
    if (!data && spec.predict) data = placeholder(spec);
    if (!data) throw new EngineError("data_invalid", "data: compile() needs {x, y}", { field: "data" });
    checkArray("data.x", data.x);
    checkArray("data.y", data.y);
    if (data.weight !== undefined) checkArray("data.weight", data.weight);
    const { plan, total, labels } = planFor(spec, data);
    const { rows } = countRows(spec, total, plan);
    const lowered = lower(plan, device.record, rows, device.rows);
    signal?.throwIfAborted();
    const executable = await Executable.create(device, lowered);
    const compiled = performance.now();
    /** @type {Session|undefined} */
    let session;
    try {
      const read = { x: await nearby(data.x), y: await nearby(data.y) };
      const { train, validation, ...prepared } = await prepare(spec, read, labels, plan.outputShape, signal);
      const weights = data.weight && (await scaledRowWeights(data.weight, train, validation, signal));
      const normalization = spec.data.normalize === "inherit" ? normalizationOf(spec, initialWeights) : prepared.normalization;
      session = new Session({ device, spec, plan, executable, data: read, weights: weights ?? null, normalization, labels, batches: new Batches(spec, train), validation, rows });
      await session.upload(labels, signal);
      const begun = beginning(plan, spec, initialWeights);
      session.setWeights(begun ?? session.initialWeights());
      if (!begun) {
        session.given = null; // the seed gives them again
        session.lacksWeights = spec.fine_tune !== null;
      }
      device.check();
      session.timings.compileMs = compiled - started;
      session.timings.uploadMs = performance.now() - compiled;
      signal?.throwIfAborted();
      return session;
    } catch (error) {
      if (session) session.dispose();
      else executable.dispose();
      throw error;
    }
  }

  /**
   * @param {{device: Device, spec: any, plan: Plan, executable: Executable, data: Data,
   *   weights: Float32Array|null, normalization: Normalization|null, labels: "index"|"values", batches: Batches, validation: Int32Array, rows: import("../backends/webgl2/lower.js").Rows}} parts
   */
  constructor({ device, spec, plan, executable, data, weights, normalization, labels, batches, validation, rows }) {
    this.device = device;
    this.spec = spec;
    this.plan = plan;
    this.executable = executable;
    this.normalization = normalization;
    /** As the network sees it. */
    this.data = { x: normalized(normalization, data.x), y: data.y };
    /** What each row counts for. */
    this.weights = weights;
    this.labels = labels;
    this.batches = batches;
    this.validation = validation;
    this.rows = rows;
    this.feeder = feederFor(executable, batches, validation);
    const outputs = plan.outputShape.reduce((a, b) => a * b, 1);
    const validationWeight = weights ? sumOf(weights, validation) : validation.length;
    this.pipeline = new Pipeline({ executable, feeder: this.feeder, spec, batches, validation, validationWeight, labels, outputs });
    const { early_stopping: options } = spec.train;
    this.stopping = options && new EarlyStopping(options);
    this.pipeline.waits = this.stopping !== null;
    /** The weights of the best validation, where they will be wanted. @type {Weights|null} */
    this.bestWeights = null;
    this.restored = false;
    /** @type {Point|null} */
    this.validated = null;
    this.totalSteps = batches.totalSteps;
    this.timings = { compileMs: 0, uploadMs: 0, firstStepMs: 0, trainMs: 0 };
    /** Points of the curve that the caller has not seen. @type {Point[]} */
    this.unseen = [];
    /** The first point whose loss is not finite, where that ends training. @type {Point|null} */
    this.broken = null;
    /** @type {number[]} */
    this.firstLosses = [];
    /** @type {Weights|null} */
    this.given = null;
    /** Whether it is to tune weights that it was not given: a checkpoint may bring them. */
    this.lacksWeights = false;
    this.running = false;
    this.disposed = false;
  }

  /** Steps done. */
  get step() {
    return this.pipeline.step;
  }

  /** Whether there are no steps left to take. */
  get done() {
    return this.step >= this.totalSteps || this.stopping?.stopped === true;
  }

  /** @param {"index"|"values"} labels @param {AbortSignal} [signal] */
  async upload(labels, signal) {
    const { feeder, spec, data, plan } = this;
    const outputs = plan.outputShape.reduce((a, b) => a * b, 1);
    for (const [name, source] of /** @type {["x"|"y", ArraySource][]} */ ([["x", data.x], ["y", data.y]])) {
      const check = valueCheck(name, spec, labels, outputs);
      await eachWindow(source, (firstRow, values) => {
        check(firstRow, values);
        feeder.write(name === "x" ? "x" : "target", firstRow, values);
      }, signal);
    }
    if (this.weights) feeder.write(ROW_WEIGHT, 0, this.weights);
    feeder.complete();
  }

  /**
   * Trains `steps` steps, or to the end. May be called again until `done`.
   * @param {{steps?: number, onTelemetry?: (points: Point[]) => void|Promise<void>, signal?: AbortSignal}} [options]
   * @returns {Promise<{step: number, done: boolean}>}
   */
  async run({ steps = Infinity, onTelemetry, signal } = {}) {
    this.idle("run");
    if (this.spec.predict) throw new EngineError("spec_invalid", "predict: this session only predicts; to train, leave predict out", { field: "predict" });
    if (this.lacksWeights) throw new EngineError("data_invalid", "initialWeights: fine_tune needs the weights of a trained model, or restore() of a checkpoint", { field: "initialWeights" });
    if (!(steps === Infinity || (Number.isInteger(steps) && steps > 0))) {
      throw new EngineError("spec_invalid", `steps: ${steps} is not a positive number of whole steps`, { field: "steps" });
    }
    this.running = true;
    const started = performance.now();
    try {
      const { pipeline } = this;
      const target = Math.min(this.totalSteps, this.step + steps);
      /** @type {Promise<Report>[]} */
      const flying = [];
      let last = performance.now();
      const land = async () => {
        const report = await /** @type {Promise<Report>} */ (flying.shift());
        this.device.check();
        const now = performance.now();
        pipeline.adapt(report.flights.reduce((sum, { count }) => sum + count, 0), now - last);
        last = now;
        this.receive(report);
        await this.show(onTelemetry);
      };
      try {
        await this.show(onTelemetry);
        while (!this.stopping?.stopped && pipeline.wants(target)) {
          if (signal?.aborted) throw new EngineError("aborted", "training was cancelled");
          flying.push(pipeline.submit(target));
          if (this.timings.firstStepMs === 0) {
            await land();
            this.timings.firstStepMs = performance.now() - started;
          }
          // What a validation says may end the run: no step is taken before it is known.
          const most = pipeline.waits && pipeline.justValidated ? 1 : IN_FLIGHT;
          while (flying.length >= most) await land();
        }
        while (flying.length) await land();
      } catch (error) {
        // Whatever ended the run is what the caller hears of: a device that fails now is told by the next call.
        await this.settle(flying).catch(() => {});
        if (error instanceof EngineError && error.code === "aborted") await this.handOver(onTelemetry);
        throw error;
      } finally {
        // What was submitted reads telemetry lines: let it end before anybody reuses them.
        await Promise.allSettled(flying);
      }
      this.device.check();
      if (this.done) this.restoreBest();
      return { step: this.step, done: this.done };
    } finally {
      this.running = false;
      this.timings.trainMs += performance.now() - started;
    }
  }

  /**
   * Ends a run that is broken off between two steps, with all that it submitted counted, so that another one can go on from there.
   * @param {Promise<Report>[]} flying
   */
  async settle(flying) {
    for (;;) {
      while (flying.length > 0) {
        const report = await /** @type {Promise<Report>} */ (flying.shift());
        this.device.check();
        this.receive(report);
      }
      if (this.pipeline.submitted === 0) return;
      flying.push(this.pipeline.submit(this.step + 1));
    }
  }

  /** Counts what a chunk reports, and keeps its points until they are shown. @param {Report} report */
  receive(report) {
    const { points, broken } = this.pipeline.points(report);
    for (const point of points) if (point.val_loss !== undefined) this.see(point);
    for (const { step, loss } of points) {
      // Only those that follow from `initialWeights`, without a gap.
      if (loss !== undefined && step <= FIRST_LOSSES && step === this.firstLosses.length + 1) this.firstLosses.push(loss);
    }
    if (this.spec.numerics.on_nonfinite === "stop") this.broken ??= broken ?? null;
    const last = this.broken?.step ?? Infinity;
    this.unseen.push(...points.filter(({ step }) => step <= last));
  }

  /** @param {((points: Point[]) => void|Promise<void>)|undefined} onTelemetry */
  async handOver(onTelemetry) {
    const points = this.unseen.splice(0);
    if (points.length > 0) await onTelemetry?.(points);
  }

  /** @param {((points: Point[]) => void|Promise<void>)|undefined} onTelemetry @throws {EngineError} non_finite_loss where training diverged */
  async show(onTelemetry) {
    await this.handOver(onTelemetry);
    if (!this.broken) return;
    const { step, loss } = this.broken;
    throw new EngineError("non_finite_loss", `the loss is ${loss} at step ${step}: training diverged; a smaller optimizer.lr may help`, {
      field: "optimizer.lr",
      detail: { step, loss: String(loss) },
    });
  }

  /** @param {Point} point of a validation; no later step has been submitted where the run may stop early */
  see(point) {
    this.validated = point;
    if (this.stopping?.see(point) && this.stopping.restoreBest) this.bestWeights = this.getWeights();
  }

  /** A run that has ended leaves the weights of its best validation. */
  restoreBest() {
    if (!this.bestWeights || this.restored) return;
    writeWeights(this.plan, this.executable, this.bestWeights, "");
    this.restored = true;
    this.validated = /** @type {EarlyStopping} */ (this.stopping).best;
  }

  /**
   * Loss and the spec's metrics on data of the caller's, or on the validation rows.
   * @param {Data} [data]
   * @returns {Promise<{loss: number, accuracy?: number, [metric: string]: any}>}
   */
  async evaluate(data) {
    this.alive();
    const { executable, spec, plan, labels, pipeline } = this;
    const { stage } = executable.sizes;
    const rows = data ? this.checkRows(data) : this.validation.length;
    const x = data && normalized(this.normalization, buffered(data.x));
    const y = data && buffered(data.y);
    if (rows === 0) throw new EngineError("data_invalid", "data: there are no validation rows; pass {x, y}", { field: "data" });
    const outputs = plan.outputShape.reduce((a, b) => a * b, 1);
    const [checkX, checkY] = [valueCheck("x", spec, labels, outputs), valueCheck("y", spec, labels, outputs)];
    const weight = data?.weight && buffered(data.weight);
    const sums = pipeline.begin(rows, data ? 0 : pipeline.validationWeight);
    for (let first = 0; first < rows; first += stage) {
      const count = Math.min(stage, rows - first);
      if (data) {
        const [inputs, targets] = [await readRows(/** @type {ArraySource} */ (x), first, count), await readRows(/** @type {ArraySource} */ (y), first, count)];
        checkX(first, inputs);
        checkY(first, targets);
        const counts = weight ? Float32Array.from(await readRows(weight, first, count)) : new Float32Array(count).fill(1);
        checkRowWeightValues(first, counts);
        // Written and drawn in one task: another call may use the staging tensors in between.
        executable.writeStage("x", inputs);
        executable.writeStage("target", targets);
        if (this.weights) executable.writeStage(ROW_WEIGHT, counts);
        sums.weight += counts.reduce((sum, value) => sum + value, 0);
        executable.submitStagedEvaluation(count);
      } else this.feeder.evaluate(first, count, 0);
      const [evaluated, read] = await Promise.all([
        pipeline.measures ? executable.readEvaluated(count) : undefined,
        executable.readTelemetry("evaluate", 0, 1),
      ]);
      if (evaluated) executable.checkAlive();
      pipeline.count(sums, read(0, 0), evaluated);
    }
    return pipeline.summary(sums);
  }

  /** Shapes of data that is not the training data, and the same kind of targets. @param {Data} data @returns {number} rows */
  checkRows(data) {
    checkArray("data.x", data.x);
    checkArray("data.y", data.y);
    const { rows, labels } = checkShapes(this.spec, data, this.plan.outputShape);
    if (data.weight !== undefined) {
      checkArray("data.weight", data.weight);
      checkRowWeights(data.weight, rows);
      if (!this.weights) throw new EngineError("data_invalid", "data.weight: this session was compiled without weights of rows", { field: "data.weight" });
    }
    if (labels !== this.labels) {
      const kinds = { index: "class numbers [rows]", values: "a value for each output" };
      throw new EngineError("data_invalid", `data.y: holds ${kinds[labels]}; this session was compiled for ${kinds[this.labels]}`, { field: "data.y" });
    }
    return rows;
  }

  /**
   * The last layer's outputs for inputs as they are before normalization.
   * @param {ArraySource} x
   * @returns {Promise<{shape: number[], data: Float32Array}>}
   */
  async predict(x) {
    this.alive();
    checkArray("x", x);
    const { stage } = this.executable.sizes;
    const rows = x.shape[0];
    const sample = x.shape.slice(1);
    if (sample.join() !== this.spec.model.input.join()) {
      throw new EngineError("data_invalid", `x: rows are [${sample}]; model.input is [${this.spec.model.input}]`, { field: "x" });
    }
    const outputs = this.plan.outputShape.reduce((a, b) => a * b, 1);
    const data = new Float32Array(rows * outputs);
    const inputs = normalized(this.normalization, buffered(x));
    const checkNumbers = numberCheck(this.spec);
    for (let first = 0; first < rows; first += stage) {
      const count = Math.min(stage, rows - first);
      const values = await readRows(inputs, first, count);
      checkNumbers("x", first, values);
      this.executable.writeStage("x", values);
      data.set(this.executable.predictStaged(count), first * outputs);
    }
    return { shape: [rows, ...this.plan.outputShape], data };
  }

  /** The weights that the run began with: given, or the seed's. @returns {Weights} */
  initialWeights() {
    return this.given ?? seededWeights(this.plan, this.spec.train.seed);
  }

  /** @returns {Weights} */
  getWeights() {
    this.alive();
    return readWeights(this.plan, this.executable, "");
  }

  /** @param {Weights} weights every parameter, and nothing else @throws {EngineError} data_invalid; no weight has changed then */
  setWeights(weights) {
    this.idle("setWeights");
    const { plan, executable } = this;
    const names = tensorNames(plan, "");
    const unknown = Object.keys(weights).find((name) => !names.includes(name));
    if (unknown) throw new EngineError("data_invalid", `weights: ${unknown} is unknown; needed: ${names.join(", ")}`, { field: unknown });
    checkWeights(plan, weights, "");
    writeWeights(plan, executable, weights, "");
    this.pipeline.validateAnew();
    this.startFrom(weights);
  }

  /** The weights are no longer what the steps so far made of the first ones: the first losses that are compared with float64 begin here.
   * @param {Weights} weights */
  startFrom(weights) {
    this.firstLosses.length = 0;
    this.broken = null;
    this.lacksWeights = false;
    if (this.step > 0) return;
    const names = tensorNames(this.plan, "");
    this.given = Object.fromEntries(names.map((name) => [name, { shape: weights[name].shape, data: Float32Array.from(weights[name].data) }]));
  }

  /** @returns {Uint8Array<ArrayBuffer>} the weights, and what normalizes the inputs, as a safetensors file; the same are the same bytes */
  weightsFile() {
    return encode({ ...normalizationTensors(this.normalization), ...this.getWeights() });
  }

  /** All that training needs to go on bit for bit. @returns {Uint8Array<ArrayBuffer>} safetensors */
  checkpoint() {
    this.alive();
    const { plan, executable } = this;
    const tensors = this.getWeights();
    for (const state of plan.states) Object.assign(tensors, readWeights(plan, executable, state));
    for (const [name, tensor] of Object.entries(this.bestWeights ?? {})) tensors[BEST + name] = tensor;
    const stopping = this.stopping && { early_stopping: this.stopping.state };
    return encode(tensors, { step: String(this.step), planKey: this.planKey, spec: this.specKey, ...stopping });
  }

  /**
   * @param {Uint8Array} bytes a checkpoint
   * @returns {{step: number, bitExact: boolean}} whether training goes on with the same bits: the plan key is the same
   */
  restore(bytes) {
    this.idle("restore");
    const { plan, executable } = this;
    const { tensors, metadata } = decode(bytes);
    if (metadata.spec !== this.specKey) {
      const message = `checkpoint: it belongs to another model or training set-up, ${metadata.spec}; this session's is ${this.specKey}`;
      throw new EngineError("data_invalid", message, { field: "checkpoint" });
    }
    const step = Number(metadata.step);
    if (!(Number.isInteger(step) && step >= 0 && step <= this.totalSteps)) {
      throw new EngineError("data_invalid", `checkpoint: its step is ${metadata.step}; legal: 0 to ${this.totalSteps}`, { field: "checkpoint" });
    }
    // All is checked before anything is written: a checkpoint that is refused leaves the session as it was.
    const states = ["", ...plan.states];
    for (const state of states) checkWeights(plan, tensors, state);
    const stop = this.stopping?.prepare(metadata.early_stopping);
    const kept = Object.entries(tensors).flatMap(([name, tensor]) => (name.startsWith(BEST) ? [[name.slice(BEST.length), tensor]] : []));
    const best = kept.length > 0 ? Object.fromEntries(kept) : null;
    if (best) checkWeights(plan, best, "");
    for (const state of states) writeWeights(plan, executable, tensors, state);
    stop?.();
    this.bestWeights = best;
    this.restored = false;
    this.pipeline.restart(step);
    this.unseen.length = 0;
    this.startFrom(tensors);
    return { step: this.step, bitExact: metadata.planKey === this.planKey };
  }

  /** What must be equal for a checkpoint to make sense. */
  get specKey() {
    const { model, loss, optimizer, train, data } = this.spec;
    return JSON.stringify([model, loss, optimizer, train, data?.validation ?? null, data?.normalize ?? null, this.rows]);
  }

  /** What must be equal for the same bits: the device, and the very text of every program. */
  get planKey() {
    const { renderer, version, userAgent, format, fetch } = this.device.record;
    return JSON.stringify(["webgl2", renderer, version, userAgent, format, fetch, this.executable.fingerprint]);
  }

  /** What inputs go through before the first layer; null: nothing. */
  get normalizationRecord() {
    return normalizationRecord(this.normalization);
  }

  /** All but the normalization, which does not change and may be long. @returns {Omit<RunRecord, "normalization">} */
  get record() {
    const { renderer, software } = this.device.record;
    return {
      backend: "webgl2",
      renderer,
      software,
      planKey: this.planKey,
      validation: this.validated,
      early_stopping: this.stopping && {
        metric: this.stopping.metric,
        best: this.stopping.best?.[this.stopping.metric] ?? null,
        best_step: this.stopping.best?.step ?? null,
        stopped: this.stopping.stopped,
        restored: this.restored,
      },
      parameters: countParameters(this.plan),
      drawsPerStep: this.executable.train.length,
      glCallsPerStep: this.pipeline.glCallsPerStep,
      plannedTextureBytes: this.executable.lowered.bytes,
      peakTextureBytes: this.executable.textureBytes,
      textures: this.executable.textures.length,
      timings: { ...this.timings, steps: this.pipeline.steps },
    };
  }

  /**
   * The precision report of the device and of this run so far.
   * @param {"basic"|"full"} [level]
   */
  async diagnose(level = "basic") {
    this.idle("diagnose");
    return diagnose(this, level);
  }

  alive() {
    if (this.disposed) throw new EngineError("disposed", "this session is disposed");
    this.device.check();
  }

  /** What changes a run waits for its end; what only reads need not, since GL keeps the order of its calls. @param {string} what */
  idle(what) {
    this.alive();
    if (this.running) throw new EngineError("busy", `${what}() can't be called while run() is under way; await it first, or abort it`);
  }

  dispose() {
    if (this.disposed) return;
    this.disposed = true;
    this.executable.dispose();
  }
}

/**
 * What the data says before anything is uploaded: the split, and what normalizes the inputs.
 * @param {any} spec @param {Data} data @param {"index"|"values"} labels @param {number[]} outputShape @param {AbortSignal} [signal]
 * @returns {Promise<import("./split.js").Split & {normalization: Normalization|null}>}
 */
async function prepare(spec, { x, y }, labels, outputShape, signal) {
  const outputs = outputShape.reduce((a, b) => a * b, 1);
  const classes = isStratified(spec) ? await readClasses(spec, y, valueCheck("y", spec, labels, outputs), signal) : null;
  const rows = split(spec, x.shape[0], classes);
  const { normalize } = spec.data;
  return { ...rows, normalization: ["none", "inherit"].includes(normalize) ? null : await fit(normalize, x, rows.train, valueCheck("x", spec, labels, outputs), signal) };
}
