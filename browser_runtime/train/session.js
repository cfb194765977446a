// Session: one training run on one device, compiled once and replayed. Runs in the thread that owns the GL context.
import { EngineError } from "../errors.js";
import { size } from "../nn/graph.js";
import { ROW_WEIGHT } from "../nn/inputs.js";
import { beginning, normalizationsOf } from "./beginning.js";
import { encodeCheckpoint, restoreCheckpoint } from "./checkpoint.js";
import { Batches, feedsOf } from "./data.js";
import { evaluate, predict } from "./evaluation.js";
import { feederFor } from "./feeder.js";
import { normalizationRecord, normalizationTensors, normalizedInputs } from "./normalization.js";
import { Pipeline } from "./pipeline.js";
import { prepare } from "./preparation.js";
import { Progress } from "./progress.js";
import { RowHashes } from "./row_hash.js";
import { scaledRowWeights, sumOf } from "./row_weights.js";
import { runRecord } from "./run_record.js";
import { encode } from "./safetensors.js";
import { eachWindow, nearby } from "./sources.js";
import { train } from "./training.js";
import { checkFinite, checkWeights, readWeights, seededWeights, tensorNames, writeWeights } from "./weights.js";

/** @import { Device } from "../backends/webgl2/device.js" */
/** @import { Executable } from "../backends/webgl2/executable.js" */
/** @import { Plan } from "../plan/plan.js" */
/** @import { Restored } from "./checkpoint.js" */
/** @import { ArraySource } from "./sources.js" */
/** @import { Data, Feed, NamedData } from "./data.js" */
/** @import { Normalizations } from "./normalization.js" */
/** @import { Point } from "./pipeline.js" */
/** @import { Planned } from "./planning.js" */
/** @import { RunRecord } from "./run_record.js" */
/** @import { Weights } from "./weights.js" */

export class Session {
  /**
   * Uploads the data and the initial weights while the programs are compiled.
   * @param {Executable} executable of what was planned
   * @param {Planned} planned
   * @param {{data: NamedData, initialWeights?: Weights|Uint8Array, signal?: AbortSignal}} options
   */
  static async compile(executable, { spec, plan, rows, labels, ms }, { data, initialWeights, signal }) {
    const started = performance.now();
    const { device } = executable;
    /** @type {NamedData} */
    const read = { x: {}, y: await nearby(data.y, signal) };
    for (const [name, source] of Object.entries(data.x)) read.x[name] = await nearby(source, signal);
    const prepared = await prepare(spec, plan, read, labels, signal);
    const weights = data.weight && (await scaledRowWeights(data.weight, prepared.train, prepared.validation, signal));
    const normalizations = spec.data.normalize === "inherit" ? normalizationsOf(spec, plan, initialWeights) : prepared.fitted;
    const session = new Session({ device, spec, plan, executable, data: read, weights: weights ?? null, normalizations, labels, batches: new Batches(spec, prepared.train), validation: prepared.validation, rows });
    await session.upload(signal);
    const begun = beginning(plan, spec, initialWeights);
    session.takeWeights(begun ?? session.initialWeights());
    if (!begun) {
      session.given = null; // the seed gives them again
      session.lacksWeights = spec.fine_tune !== null;
    }
    const uploaded = performance.now();
    await executable.compiled;
    device.check();
    session.timings.compileMs = ms + executable.compileMs;
    session.timings.uploadMs = uploaded - started;
    signal?.throwIfAborted();
    return session;
  }

  /**
   * @param {{device: Device, spec: any, plan: Plan, executable: Executable, data: NamedData,
   *   weights: Float32Array|null, normalizations: Normalizations, labels: "index"|"values", batches: Batches, validation: Int32Array, rows: import("../backends/webgl2/lower.js").Rows}} parts
   */
  constructor({ device, spec, plan, executable, data, weights, normalizations, labels, batches, validation, rows }) {
    this.device = device;
    this.spec = spec;
    this.plan = plan;
    this.executable = executable;
    /** What inputs go through, by name. */
    this.normalizations = normalizations;
    /** The training data as the network sees them. @type {Feed[]} */
    this.feeds = feedsOf(spec, plan, { x: normalizedInputs(normalizations, data.x), y: data.y }, labels);
    if (weights) this.feeds.push({ tensor: ROW_WEIGHT, source: { shape: [weights.length], data: weights }, check: () => {} });
    /** What each row counts for. */
    this.weights = weights;
    this.labels = labels;
    this.batches = batches;
    this.validation = validation;
    this.rows = rows;
    this.feeder = feederFor(executable, batches, validation);
    /** Of the rows as the network sees them. */
    this.rowHashes = new RowHashes();
    const outputs = size(plan.outputShape);
    const validationWeight = weights ? sumOf(weights, validation) : validation.length;
    this.pipeline = new Pipeline({ executable, feeder: this.feeder, spec, batches, validation, validationWeight, labels, outputs });
    this.progress = new Progress({ spec, plan, executable, totalSteps: batches.totalSteps });
    this.pipeline.waits = this.progress.stopping !== null;
    this.totalSteps = batches.totalSteps;
    this.timings = { compileMs: 0, uploadMs: 0, firstStepMs: 0, trainMs: 0 };
    /** @type {Weights|null} */
    this.given = null;
    /** Whether it is to tune weights that it was not given: a checkpoint may bring them. */
    this.lacksWeights = false;
    this.running = false;
    this.disposed = false;
    /** Calls under way that draw over several tasks. */
    this.drawing = 0;
  }

  /** Steps done. */
  get step() {
    return this.pipeline.step;
  }

  /** Whether there are no steps left to take. */
  get done() {
    return this.step >= this.totalSteps || this.progress.stopped;
  }

  /** @param {AbortSignal} [signal] */
  async upload(signal) {
    const { feeder, feeds } = this;
    for (const { tensor, source, check } of feeds) {
      await eachWindow(source, (firstRow, values) => {
        check(firstRow, values);
        this.rowHashes.take(tensor, values);
        feeder.write(tensor, firstRow, values);
      }, signal);
    }
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
    this.begun();
    this.running = true;
    const started = performance.now();
    try {
      await this.during(() => train(this, Math.min(this.totalSteps, this.step + steps), { onTelemetry, signal }));
      this.device.check();
      if (this.done) this.progress.restoreBest();
      return { step: this.step, done: this.done };
    } finally {
      this.running = false;
      this.timings.trainMs += performance.now() - started;
    }
  }

  /**
   * Loss and the spec's metrics on data of the caller's, or on the validation rows.
   * @param {Data} [data]
   * @returns {Promise<{loss: number, accuracy?: number, [metric: string]: any}>}
   */
  async evaluate(data) {
    this.alive();
    this.begun();
    return this.during(() => evaluate(this, data));
  }

  /**
   * The last layer's outputs for inputs as they are before normalization.
   * @param {ArraySource|Record<string, ArraySource>} x by name where the model has several
   * @returns {Promise<{shape: number[], data: Float32Array}>}
   */
  async predict(x) {
    this.alive();
    this.begun();
    return this.during(() => predict(this, x));
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

  /** @param {Weights} weights every parameter, and nothing else, finite where it trains @throws {EngineError} data_invalid; no weight has changed then */
  setWeights(weights) {
    this.idle("setWeights");
    if (!this.spec.predict) checkFinite(weights);
    this.takeWeights(weights);
  }

  /** The same of any numbers. @param {Weights} weights */
  takeWeights(weights) {
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
    this.progress.weightsChanged();
    this.lacksWeights = false;
    if (this.step > 0) return;
    const names = tensorNames(this.plan, "");
    this.given = Object.fromEntries(names.map((name) => [name, { shape: weights[name].shape, data: Float32Array.from(weights[name].data) }]));
  }

  /** @returns {Uint8Array<ArrayBuffer>} the weights, and what normalizes the inputs, as a safetensors file; the same are the same bytes */
  weightsFile() {
    return encode({ ...normalizationTensors(this.normalizations), ...this.getWeights() });
  }

  /** All that training needs to go on bit for bit. @returns {Uint8Array<ArrayBuffer>} safetensors */
  checkpoint() {
    this.alive();
    this.begun();
    return encodeCheckpoint(this);
  }

  /**
   * @param {Uint8Array} bytes a checkpoint
   * @returns {Restored}
   */
  restore(bytes) {
    this.idle("restore");
    return restoreCheckpoint(this, bytes);
  }

  /** What must be equal for the same bits: the device, and the very text of every program. */
  get planKey() {
    const { renderer, version, userAgent, format, fetch } = this.device.record;
    return JSON.stringify(["webgl2", renderer, version, userAgent, format, fetch, this.executable.fingerprint]);
  }

  /** What inputs go through before the first layer; null: nothing. */
  get normalizationRecord() {
    return normalizationRecord(this.spec.model.input, this.normalizations);
  }

  /** All but the normalization, which does not change and may be long. @returns {Omit<RunRecord, "normalization">} */
  get record() {
    return runRecord(this);
  }

  /**
   * The precision report of the device and of this run so far.
   * @param {"basic"|"full"} [level]
   */
  async diagnose(level = "basic") {
    this.idle("diagnose");
    this.begun();
    const { diagnose } = await import("./diagnostics.js");
    this.idle("diagnose"); // a run may have begun meanwhile
    return this.during(() => diagnose(this, level));
  }

  alive() {
    this.goesOn();
    this.device.check();
  }

  /** Its weights are those that it is to tune, not what the seed gives in their place. */
  begun() {
    if (!this.lacksWeights) return;
    throw new EngineError("data_invalid", "initialWeights: fine_tune needs the weights of a trained model: compile with them, or restore() a checkpoint first", { field: "initialWeights" });
  }

  /** Between two parts of what draws over several tasks. */
  goesOn() {
    if (this.disposed) throw new EngineError("disposed", "this session is disposed");
  }

  /**
   * What draws over several tasks keeps what it draws with until it has ended, also of a session that is disposed of meanwhile: a draw
   * without its textures would be an error of the device's, told to whoever calls next.
   * @template T @param {() => Promise<T>} work @returns {Promise<T>}
   */
  async during(work) {
    this.drawing += 1;
    try {
      return await work();
    } finally {
      this.drawing -= 1;
      if (this.disposed && this.drawing === 0) this.executable.dispose();
    }
  }

  /** What changes a run waits for its end; what only reads need not, since GL keeps the order of its calls. @param {string} what */
  idle(what) {
    this.alive();
    if (this.running) throw new EngineError("busy", `${what}() can't be called while run() is under way; await it first, or abort it`);
  }

  dispose() {
    if (this.disposed) return;
    this.disposed = true;
    if (this.drawing === 0) this.executable.dispose();
  }
}
