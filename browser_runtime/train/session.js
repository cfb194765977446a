// Session: one training run on one device, compiled once and replayed. Runs in the thread that owns the GL context.
import { EngineError } from "../errors.js";
import { initialize } from "../nn/initializers.js";
import { optimizers } from "../nn/ops.js";
import { learningRate } from "../nn/schedules.js";
import { validateSpec } from "../nn/spec.js";
import { buildPlan } from "../plan/plan.js";
import { Executable } from "../backends/webgl2/executable.js";
import { lower } from "../backends/webgl2/lower.js";
import { Batches, checkArray, checkShapes, eachWindow, readRows, split, splitSizes, valueCheck } from "./data.js";
import { diagnose } from "./diagnostics.js";
import { decode, encode } from "./safetensors.js";

/** @import { Device } from "../backends/webgl2/device.js" */
/** @import { ArraySource } from "./data.js" */

/** A point of the loss curve; `step` counts from 1, `loss` is that of the batch before the step's update.
 * @typedef {{step: number, loss?: number, val_loss?: number, val_accuracy?: number}} Point */

/** @typedef {Record<string, {shape: number[], data: Float32Array}>} Weights */

/** What a run ran on and what it cost.
 * @typedef {{backend: string, renderer: string, software: boolean, planKey: string, parameters: number, drawsPerStep: number, glCallsPerStep: number,
 *   plannedTextureBytes: number, peakTextureBytes: number, textures: number,
 *   timings: {compileMs: number, uploadMs: number, firstStepMs: number, trainMs: number, steps: number}}} RunRecord */

const CHUNK_MS = 80; // telemetry is read about this often
const CHUNKS_IN_FLIGHT = 2; // the GPU always has one more to do
const FIRST_LOSSES = 10; // compared with a float64 run by the diagnostics

/** Limits assumed where there is no device to ask. */
const ASSUMED = { maxDrawBuffers: 8, maxTextureSize: 8192, maxArrayLayers: 256 };

/**
 * Counts of the data's rows by use, without touching a row: what does not fit is refused before anything is made for it.
 * @param {any} spec @param {number} total
 */
function countRows(spec, total) {
  const { train, validation } = splitSizes(spec, total);
  const { size, totalSteps } = new Batches(spec, { length: train });
  return { rows: { total, train, validation, batch: size }, totalSteps };
}

/**
 * What a spec would cost, exactly for a device of the assumed limits.
 * @param {any} input a job spec
 * @param {{x: {shape: number[]}, y: {shape: number[]}}} shapes of the data
 * @returns {{parameters: number, textureBytes: number, textures: number, drawsPerStep: number, totalSteps: number}}
 */
export function estimate(input, shapes) {
  const spec = validateSpec(input);
  const labels = spec.loss === "softmax_cross_entropy" && shapes.y.shape.length === 1 ? "index" : "values";
  const plan = buildPlan(spec, { labels });
  const { rows, totalSteps } = countRows(spec, shapes.x.shape[0]);
  const lowered = lower(plan, ASSUMED, rows);
  return {
    parameters: countParameters(plan),
    textureBytes: lowered.bytes,
    textures: lowered.textures.length,
    drawsPerStep: lowered.phases.train.flat().length,
    totalSteps,
  };
}

/** @param {import("../plan/plan.js").Plan} plan */
const countParameters = ({ parameters }) => parameters.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1) + units(shape), 0);

/** Columns of a kernel, one bias each. @param {number[]} shape */
const units = (shape) => /** @type {number} */ (shape.at(-1));

export class Session {
  /**
   * Validates, plans, compiles, uploads the data and the initial weights.
   * @param {Device} device
   * @param {any} input the job spec
   * @param {{data: {x: ArraySource, y: ArraySource}, initialWeights?: Weights, signal?: AbortSignal}} options
   */
  static async compile(device, input, { data, initialWeights, signal }) {
    const started = performance.now();
    const spec = validateSpec(input);
    if (!data) throw new EngineError("data_invalid", "data: compile() needs {x, y}", { field: "data" });
    const shape = buildPlan(spec, { labels: "values" }).outputShape;
    const { rows: total, labels } = checkShapes(spec, data, shape);
    const plan = buildPlan(spec, { labels });
    const { rows } = countRows(spec, total);
    const lowered = lower(plan, device.record, rows, device.rows);
    signal?.throwIfAborted();
    const executable = await Executable.create(device, lowered);
    const { train, validation } = split(spec, total);
    const session = new Session({ device, spec, plan, executable, data, labels, batches: new Batches(spec, train), validation, rows });
    try {
      const compiled = performance.now();
      await session.upload(labels);
      session.setWeights(initialWeights ?? session.initialWeights());
      if (!initialWeights) session.given = null; // the seed gives them again
      device.check();
      session.timings.compileMs = compiled - started;
      session.timings.uploadMs = performance.now() - compiled;
      signal?.throwIfAborted();
    } catch (error) {
      session.dispose();
      throw error;
    }
    return session;
  }

  /**
   * @param {{device: Device, spec: any, plan: import("../plan/plan.js").Plan, executable: Executable, data: {x: ArraySource, y: ArraySource},
   *   labels: "index"|"values", batches: Batches, validation: Int32Array, rows: import("../backends/webgl2/lower.js").Rows}} parts
   */
  constructor({ device, spec, plan, executable, data, labels, batches, validation, rows }) {
    this.device = device;
    this.spec = spec;
    this.plan = plan;
    this.executable = executable;
    this.data = data;
    this.labels = labels;
    this.batches = batches;
    this.validation = validation;
    this.rows = rows;
    this.step = 0;
    this.totalSteps = batches.totalSteps;
    this.timings = { compileMs: 0, uploadMs: 0, firstStepMs: 0, trainMs: 0, steps: 0 };
    /** @type {number[]} */
    this.firstLosses = [];
    /** @type {Weights|null} */
    this.given = null;
    this.glCallsPerStep = 0;
    this.countedSteps = 0;
    this.orderEpoch = -1;
    this.chunkSteps = 4;
    this.chunk = 0;
    this.running = false;
    this.disposed = false;
    this.accuracy = spec.metrics.includes("accuracy");
  }

  /** @param {"index"|"values"} labels */
  async upload(labels) {
    const { executable, spec, data, plan } = this;
    const outputs = plan.outputShape.reduce((a, b) => a * b, 1);
    for (const [name, source] of /** @type {["x"|"y", ArraySource][]} */ ([["x", data.x], ["y", data.y]])) {
      const check = valueCheck(name, spec, labels, outputs);
      await eachWindow(source, (firstRow, values) => {
        check(firstRow, values);
        executable.writeData(name === "x" ? "x" : "target", firstRow, values);
      });
    }
    if (this.validation.length === 0) return;
    const aligned = executable.place("order.stage").layout.rows;
    const order = new Int32Array(aligned).fill(-1);
    order.set(this.validation);
    executable.setOrder("stage", order);
  }

  /**
   * Trains `steps` steps, or to the end. May be called again until `done`.
   * @param {{steps?: number, onTelemetry?: (points: Point[]) => void|Promise<void>, signal?: AbortSignal}} [options]
   * @returns {Promise<{step: number, done: boolean}>}
   */
  async run({ steps = Infinity, onTelemetry, signal } = {}) {
    this.alive();
    if (!(steps > 0)) throw new EngineError("spec_invalid", `steps: ${steps} is not a positive number`, { field: "steps" });
    if (this.running) throw new EngineError("internal", "run() is running already");
    this.running = true;
    const started = performance.now();
    try {
      const target = Math.min(this.totalSteps, this.step + steps);
      /** @type {Promise<Point[]>[]} */
      const flying = [];
      let last = performance.now();
      const land = async () => {
        const points = await flying.shift();
        const now = performance.now();
        const trained = points?.filter((p) => p.loss !== undefined).length ?? 0;
        this.adapt(trained, now - last);
        last = now;
        if (points?.length) await this.deliver(points, onTelemetry);
      };
      try {
        while (this.step < target) {
          if (signal?.aborted) throw new EngineError("aborted", "training was cancelled");
          flying.push(this.submit(target));
          if (this.timings.firstStepMs === 0) {
            await land();
            this.timings.firstStepMs = performance.now() - started;
          }
          if (flying.length >= CHUNKS_IN_FLIGHT) await land();
        }
        while (flying.length) await land();
      } finally {
        // What was submitted reads telemetry lines: let it end before anybody reuses them.
        await Promise.allSettled(flying);
      }
      this.device.check();
      return { step: this.step, done: this.step >= this.totalSteps };
    } finally {
      this.running = false;
      this.timings.trainMs += performance.now() - started;
    }
  }

  /** Aims at chunks of CHUNK_MS. @param {number} steps @param {number} ms */
  adapt(steps, ms) {
    if (steps === 0) return;
    const wanted = (CHUNK_MS * steps) / Math.max(ms, 0.5);
    this.chunkSteps = Math.max(1, Math.min(Math.round(wanted), this.chunkSteps * 4));
  }

  /**
   * Submits a chunk of steps and starts reading its telemetry.
   * @param {number} target
   * @returns {Promise<Point[]>}
   */
  submit(target) {
    const { executable, batches } = this;
    const lines = Math.floor(executable.telemetryLines / (CHUNKS_IN_FLIGHT + 1));
    const firstLine = (this.chunk++ % (CHUNKS_IN_FLIGHT + 1)) * lines;
    const end = Math.min(target, this.step + this.chunkSteps);
    /** @type {{line: number, first: number, count: number}[]} */
    const flights = [];
    /** @type {{line: number, step: number, batches: number, last: boolean}[]} */
    const evaluations = [];
    while (this.step < end && flights.length < lines && evaluations.length + this.evaluationLines() <= lines) {
      const count = this.flight(end);
      const line = firstLine + flights.length;
      const submit = () => executable.submitTraining(count, line);
      executable.prepare(count);
      // Counted on a few flights; the longest says least of what belongs to the flight.
      if (count > this.countedSteps) {
        this.glCallsPerStep = countCalls(this.device.gl, submit) / count;
        this.countedSteps = count;
      } else submit();
      flights.push({ line, first: this.step + 1, count });
      this.step += count;
      this.timings.steps += count;
      const epochEnds = this.step % batches.perEpoch === 0 || this.step === this.totalSteps;
      if (epochEnds && this.validation.length > 0) this.evaluateEpoch(firstLine, evaluations);
    }
    return this.collect(firstLine, flights, evaluations);
  }

  /** Fills the scalars of the next flight. @param {number} end @returns {number} its steps */
  flight(end) {
    const { executable, batches, spec } = this;
    const { steps, sizes } = executable;
    const epoch = Math.floor(this.step / batches.perEpoch);
    if (this.orderEpoch < 0 || (batches.shuffled && this.orderEpoch !== epoch)) {
      executable.setOrder("epoch", batches.order(epoch, sizes.batch));
      this.orderEpoch = epoch;
    }
    const epochMatters = batches.shuffled || this.validation.length > 0;
    const left = epochMatters ? batches.perEpoch - (this.step % batches.perEpoch) : Infinity;
    const count = Math.min(end - this.step, sizes.trainSlots, left);
    const { scalars } = optimizers[spec.optimizer.type];
    for (let i = 0; i < count; i++) {
      const b = (this.step + i) % batches.perEpoch;
      const rows = batches.rows(b);
      steps.set(i, rows, b * sizes.batch, 1 / rows);
      scalars(spec.optimizer, learningRate(spec.optimizer, this.step + i, this.totalSteps), this.step + i + 1, steps.scalars(i));
    }
    return count;
  }

  evaluationLines() {
    const { stage, evaluateSlots } = this.executable.sizes;
    return Math.ceil(this.validation.length / (stage * evaluateSlots));
  }

  /** @param {number} firstLine @param {{line: number, step: number, batches: number, last: boolean}[]} evaluations */
  evaluateEpoch(firstLine, evaluations) {
    const { stage, evaluateSlots } = this.executable.sizes;
    const span = stage * evaluateSlots;
    for (let first = 0; first < this.validation.length; first += span) {
      const rows = Math.min(span, this.validation.length - first);
      const line = firstLine + evaluations.length;
      const batches = this.executable.submitEvaluation(first, rows, line);
      evaluations.push({ line, step: this.step, batches, last: first + span >= this.validation.length });
    }
  }

  /**
   * @param {number} firstLine @param {{line: number, first: number, count: number}[]} flights
   * @param {{line: number, step: number, batches: number, last: boolean}[]} evaluations
   * @returns {Promise<Point[]>}
   */
  async collect(firstLine, flights, evaluations) {
    const { executable } = this;
    // Both reads are issued before either is awaited.
    const [train, evaluate] = await Promise.all([
      executable.readTelemetry("train", firstLine, flights.length),
      evaluations.length > 0 ? executable.readTelemetry("evaluate", firstLine, evaluations.length) : null,
    ]);
    this.device.check();
    /** @type {Point[]} */
    const points = [];
    for (const { line, first, count } of flights) {
      for (let i = 0; i < count; i++) points.push({ step: first + i, loss: train(line, i).loss });
    }
    let [loss, correct] = [0, 0];
    for (const { line, step, batches, last } of evaluations) {
      for (let slot = 0; slot < batches; slot++) {
        const sums = /** @type {NonNullable<typeof evaluate>} */ (evaluate)(line, slot);
        loss += sums.loss;
        correct += sums.correct;
      }
      if (!last) continue;
      points.push({ step, val_loss: loss / this.validation.length, ...(this.accuracy && { val_accuracy: correct / this.validation.length }) });
      [loss, correct] = [0, 0];
    }
    // By step, and a step's loss before the metrics that were taken after it, however the run was cut into chunks.
    return points.sort((a, b) => a.step - b.step);
  }

  /** @param {Point[]} points @param {((points: Point[]) => void|Promise<void>)|undefined} onTelemetry */
  async deliver(points, onTelemetry) {
    for (const { step, loss } of points) {
      // Only those that follow from `initialWeights`, without a gap.
      if (loss !== undefined && step <= FIRST_LOSSES && step === this.firstLosses.length + 1) this.firstLosses.push(loss);
    }
    const broken = points.find((p) => p.loss !== undefined && !Number.isFinite(p.loss));
    const stop = broken && this.spec.numerics.on_nonfinite === "stop";
    await onTelemetry?.(stop ? points.filter((p) => p.step <= broken.step) : points);
    if (!stop) return;
    throw new EngineError("non_finite_loss", `the loss is ${broken.loss} at step ${broken.step}: training diverged; a smaller optimizer.lr may help`, {
      field: "optimizer.lr",
      detail: { step: broken.step, loss: String(broken.loss) },
    });
  }

  /**
   * Loss, and accuracy where the spec asks for it, on data of the caller's, or on the validation rows.
   * @param {{x: ArraySource, y: ArraySource}} [data]
   * @returns {Promise<{loss: number, accuracy?: number}>}
   */
  async evaluate(data) {
    this.alive();
    const { executable, spec, plan, labels } = this;
    const { stage } = executable.sizes;
    const rows = data ? this.checkRows(data) : this.validation.length;
    if (rows === 0) throw new EngineError("data_invalid", "data: there are no validation rows; pass {x, y}", { field: "data" });
    const outputs = plan.outputShape.reduce((a, b) => a * b, 1);
    const [checkX, checkY] = [valueCheck("x", spec, labels, outputs), valueCheck("y", spec, labels, outputs)];
    let [loss, correct] = [0, 0];
    for (let first = 0; first < rows; first += stage) {
      const count = Math.min(stage, rows - first);
      if (data) {
        const [x, y] = [await readRows(data.x, first, count), await readRows(data.y, first, count)];
        checkX(first, x);
        checkY(first, y);
        // Written and drawn in one task: another call may use the staging tensors in between.
        executable.writeStage("x", x);
        executable.writeStage("target", y);
        executable.submitStagedEvaluation(count);
      } else executable.submitEvaluation(first, count, 0);
      const sums = (await executable.readTelemetry("evaluate", 0, 1))(0, 0);
      loss += sums.loss;
      correct += sums.correct;
    }
    return { loss: loss / rows, ...(this.accuracy && { accuracy: correct / rows }) };
  }

  /** Shapes of data that is not the training data, and the same kind of targets. @param {{x: ArraySource, y: ArraySource}} data @returns {number} rows */
  checkRows(data) {
    const { rows, labels } = checkShapes(this.spec, data, this.plan.outputShape);
    if (labels !== this.labels) {
      const kinds = { index: "class numbers [rows]", values: "a value for each output" };
      throw new EngineError("data_invalid", `data.y: holds ${kinds[labels]}; this session was compiled for ${kinds[this.labels]}`, { field: "data.y" });
    }
    return rows;
  }

  /**
   * The last layer's outputs.
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
    for (let first = 0; first < rows; first += stage) {
      const count = Math.min(stage, rows - first);
      const values = await readRows(x, first, count);
      this.executable.writeStage("x", values);
      data.set(this.executable.predictStaged(count), first * outputs);
    }
    return { shape: [rows, ...this.plan.outputShape], data };
  }

  /** The weights that the seed gives. @returns {Weights} */
  initialWeights() {
    if (this.given) return this.given;
    /** @type {Weights} */
    const weights = {};
    this.plan.parameters.forEach(({ tensor, shape, fanIn, fanOut, init }, parameterIndex) => {
      weights[`${tensor}.kernel`] = { shape, data: initialize(init, shape, { fanIn, fanOut, seed: this.spec.train.seed, parameterIndex }) };
      weights[`${tensor}.bias`] = { shape: [units(shape)], data: new Float32Array(units(shape)) };
    });
    return weights;
  }

  /** @returns {Weights} by name: `<layer>.kernel` [in, out], `<layer>.bias` [out] */
  getWeights() {
    this.alive();
    return this.readWeights("");
  }

  /** @param {string} state "" for the parameters @returns {Weights} */
  readWeights(state) {
    this.executable.enter();
    /** @type {Weights} */
    const weights = {};
    for (const { tensor, shape } of this.plan.parameters) {
      const { data, bias } = this.executable.readTensor(state ? `${tensor}.${state}` : tensor);
      weights[`${tensor}.kernel${state && `.${state}`}`] = { shape, data };
      weights[`${tensor}.bias${state && `.${state}`}`] = { shape: [units(shape)], data: /** @type {Float32Array} */ (bias) };
    }
    return weights;
  }

  /** @param {Weights} weights every parameter, and nothing else @throws {EngineError} data_invalid; no weight has changed then */
  setWeights(weights) {
    this.alive();
    const names = this.tensorNames("");
    const unknown = Object.keys(weights).find((name) => !names.includes(name));
    if (unknown) throw new EngineError("data_invalid", `weights: ${unknown} is unknown; needed: ${names.join(", ")}`, { field: unknown });
    this.checkWeights(weights, "");
    this.writeWeights(weights, "");
    this.startFrom(weights);
  }

  /** The weights are no longer what the steps so far made of the first ones: the first losses that are compared with float64 begin here.
   * @param {Weights} weights */
  startFrom(weights) {
    this.firstLosses.length = 0;
    if (this.step > 0) return;
    this.given = Object.fromEntries(this.tensorNames("").map((name) => [name, { shape: weights[name].shape, data: Float32Array.from(weights[name].data) }]));
  }

  /** Under which names a state of the parameters, or "" the parameters themselves, are exported. @param {string} state */
  tensorNames(state) {
    return this.plan.parameters.flatMap(({ tensor }) => ["kernel", "bias"].map((part) => `${tensor}.${part}${state && `.${state}`}`));
  }

  /** @param {Weights} weights @param {string} state @throws {EngineError} data_invalid where one is missing or has another shape */
  checkWeights(weights, state) {
    const names = this.tensorNames(state);
    this.plan.parameters.flatMap(({ shape }) => [shape, [units(shape)]]).forEach((wanted, i) => {
      const name = names[i];
      const given = weights[name];
      const bad = (/** @type {string} */ why) => new EngineError("data_invalid", `weights: ${name} ${why}`, { field: name });
      if (!given) throw bad(`is missing; needed: ${names.join(", ")}`);
      if (given.shape?.join() !== wanted.join()) throw bad(`is [${given.shape}]; needed: [${wanted}]`);
      const size = wanted.reduce((a, b) => a * b, 1);
      if (given.data?.length !== size) throw bad(`has ${given.data?.length} values; its shape [${wanted}] needs ${size}`);
    });
  }

  /** @param {Weights} weights that `checkWeights` passed @param {string} state */
  writeWeights(weights, state) {
    const names = this.tensorNames(state);
    this.plan.parameters.forEach(({ tensor }, i) => {
      this.executable.writeParameter(state ? `${tensor}.${state}` : tensor, weights[names[2 * i]].data, weights[names[2 * i + 1]].data);
    });
  }

  /** @returns {Uint8Array<ArrayBuffer>} the weights as a safetensors file; the same weights are the same bytes */
  weightsFile() {
    return encode(this.getWeights());
  }

  /** All that training needs to go on bit for bit. @returns {Uint8Array<ArrayBuffer>} safetensors */
  checkpoint() {
    this.alive();
    const tensors = this.getWeights();
    for (const state of this.plan.states) Object.assign(tensors, this.readWeights(state));
    return encode(tensors, { step: String(this.step), planKey: this.planKey, spec: this.specKey });
  }

  /**
   * @param {Uint8Array} bytes a checkpoint
   * @returns {{step: number, bitExact: boolean}} whether training goes on with the same bits: the plan key is the same
   */
  restore(bytes) {
    this.alive();
    const { tensors, metadata } = decode(bytes);
    if (metadata.spec !== this.specKey) throw new EngineError("data_invalid", "checkpoint: it belongs to another model or training set-up");
    const step = Number(metadata.step);
    if (!(Number.isInteger(step) && step >= 0 && step <= this.totalSteps)) {
      throw new EngineError("data_invalid", `checkpoint: its step is ${metadata.step}; legal: 0 to ${this.totalSteps}`);
    }
    // All is checked before anything is written: a checkpoint that is refused leaves the session as it was.
    const states = ["", ...this.plan.states];
    for (const state of states) this.checkWeights(tensors, state);
    for (const state of states) this.writeWeights(tensors, state);
    this.step = step;
    this.startFrom(tensors);
    this.orderEpoch = -1;
    return { step: this.step, bitExact: metadata.planKey === this.planKey };
  }

  /** What must be equal for a checkpoint to make sense. */
  get specKey() {
    const { model, loss, optimizer, train, data } = this.spec;
    return JSON.stringify([model, loss, optimizer, train, data?.validation ?? null, this.rows]);
  }

  /** What must be equal for the same bits: device, and every choice that the lowering made. */
  get planKey() {
    const { renderer, version, userAgent, format, fetch } = this.device.record;
    const choices = this.executable.lowered.phases.train.flat().map(({ source }) => `${source.shader}:${source.domain.layers}`);
    return JSON.stringify(["webgl2", renderer, version, userAgent, format, fetch, choices]);
  }

  /** @returns {RunRecord} */
  get record() {
    const { renderer, software } = this.device.record;
    return {
      backend: "webgl2",
      renderer,
      software,
      planKey: this.planKey,
      parameters: countParameters(this.plan),
      drawsPerStep: this.executable.train?.length ?? 0,
      glCallsPerStep: this.glCallsPerStep,
      plannedTextureBytes: this.executable.lowered.bytes,
      peakTextureBytes: this.device.live.peakTextureBytes,
      textures: this.device.live.textures,
      timings: { ...this.timings },
    };
  }

  /**
   * The precision report of the device and of this run so far.
   * @param {"basic"|"full"} [level]
   */
  async diagnose(level = "basic") {
    this.alive();
    return diagnose(this, level);
  }

  alive() {
    if (this.disposed) throw new EngineError("disposed", "this session is disposed");
    this.device.check();
  }

  dispose() {
    if (this.disposed) return;
    this.disposed = true;
    this.executable.dispose();
  }
}

/** Counts the GL calls that `work` makes. @param {WebGL2RenderingContext} gl @param {() => void} work */
function countCalls(gl, work) {
  let calls = 0;
  const any = /** @type {any} */ (gl);
  const names = [];
  for (const name in any) {
    const method = any[name];
    if (typeof method !== "function" || Object.hasOwn(any, name)) continue;
    names.push(name);
    any[name] = (/** @type {any[]} */ ...args) => {
      calls += 1;
      return method.apply(gl, args);
    };
  }
  try {
    work();
  } finally {
    for (const name of names) delete any[name];
  }
  return calls;
}
