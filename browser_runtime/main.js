// The worker's page: fetches the job, trains it with texelgrad.js, posts what comes of it (docs/page-protocol.md).
// The only file of the engine that knows the page and its runner. No training logic here.

import { EngineError } from "./errors.js";
import { size } from "./nn/graph.js";
import { arrayOf, eachInput, mapValues, named, shapesOf, unnamed } from "./nn/inputs.js";
import { withoutTheServices } from "./nn/spec_page.js";
import { MetricsSender, progressFrame } from "./train/metrics_sender.js";
import { countNonFinite, headerOf } from "./train/safetensors.js";
import { readRows, reordered } from "./train/sources.js";
import { Uploads } from "./train/uploads.js";
import { compile, FIRST_LOSSES, probe } from "./texelgrad.js";

/** @import { ModelInput } from "./nn/inputs.js" */

/**
 * @typedef {{shape: number[], dtype: "float32" | "int32", url: string, order?: number[]}} ArrayDescription
 * @typedef {{
 *   spec: any,
 *   data: {inputs: Record<string, ArrayDescription>, targets: Record<string, ArrayDescription>, weights: Record<string, ArrayDescription>},
 *   resume: {url: string, step: number, measured: boolean} | null,
 *   initial: {url: string} | null,
 *   allow_software: boolean,
 * }} Job
 */

/** The attempt is no longer ours: nothing that we post is kept, so there is nothing left to do. */
class Fenced extends Error {}

const abort = new AbortController();
let fenced = false;
/** What the page does besides compiling and training, in ms: what it sends while it trains counts where training waits for it. */
const spent = { reportMs: 0, checkpointMs: 0, saveMs: 0 };

Object.assign(globalThis, {
  texelgradPage: {
    /** Shows that this browser can train, and loads what training needs. @returns {Promise<object>} the device record */
    async prove() {
      const device = await probe();
      if (!device.webgl2) throw new EngineError("no_webgl2", "this browser has no WebGL2 context");
      if (!device.float32) throw new EngineError("no_float_targets", "a float32 texture could not be rendered and read");
      return device;
    },

    /** Begins the job; returns at once. */
    start() {
      work().catch(reportFailure);
    },

    /** Stops at the next burst. */
    cancel() {
      abort.abort();
    },
  },
});

const WINDOW_VALUES = 4 << 20; // inputs or outputs in memory at once while predicting: 16 MB

/** Works off the job of this page: trains from its start, or from its checkpoint, to its end; or predicts. */
async function work() {
  /** @type {Job} */
  const job = await (await get("job")).json();
  const { spec } = job;
  // One that resumes has its weights, but may need to know what its inputs go through.
  const begun = job.initial && (!job.resume || spec.data.normalize === "inherit") ? new Uint8Array(await (await get(job.initial.url)).arrayBuffer()) : undefined;
  const session = await compile(withoutTheServices(spec), {
    backend: spec.backend,
    shaderUrl: address("shaders/bundle.json"),
    allowSoftware: job.allow_software,
    signal: abort.signal,
    initialWeights: begun,
    data: spec.predict ? undefined : dataOf(job),
  });
  const { renderer, drawsPerStep, peakTextureBytes, timings } = session.record;
  const mib = (peakTextureBytes / 2 ** 20).toFixed(1);
  console.info(`compiled in ${Math.round(timings.compileMs)} ms: ${drawsPerStep} draws a step, ${mib} MiB of textures, on ${renderer}`);
  try {
    if (spec.predict) return await predict(session, spec.model.input, inputsOf(job));
    const resumed = job.resume && (await session.restore(new Uint8Array(await (await get(job.resume.url)).arrayBuffer())));
    if (resumed) console.info(`goes on from step ${resumed.step}, ${resumed.bitExact ? "bit for bit" : `its bits may differ: ${resumed.reason}`}`);
    const final = await runInPieces(session, spec, reportIsDue(session, job, resumed));
    /** @type {ReturnType<typeof warned>} */
    let warnings = [];
    await timed("saveMs", async () => {
      const file = await session.weightsFile();
      warnings = warned("weights", countNonFinite(file), `: ${session.record.diverged ?? "the last updates were too large"}`);
      await post("weights", new Blob([file]));
    });
    await postJson("result", { record: { ...recordOf(session), resumed, warnings }, final });
  } finally {
    await session.dispose();
  }
}

/**
 * What the user of weights or predictions must know, besides that they are there; also in the log.
 * @param {"weights" | "predictions"} what @param {{values: number, nonFinite: number}} counted @param {string} [meaning]
 * @returns {{code: string, message: string}[]}
 */
function warned(what, { values, nonFinite }, meaning = "") {
  if (nonFinite === 0) return [];
  const message = `${nonFinite} of ${values} ${what} are NaN or infinite${meaning}`;
  console.warn(message);
  return [{ code: `${what}_not_finite`, message }];
}

/**
 * Posts the outputs for all rows as one file, whose parts are made window by window.
 * @param {Awaited<ReturnType<typeof compile>>} session @param {ModelInput} input @param {ReturnType<typeof inputsOf>} x
 */
async function predict(session, input, x) {
  const inputs = Object.values(named(input, x));
  const rows = inputs[0].shape[0];
  const valuesOfRow = inputs.reduce((sum, { shape }) => sum + size(shape.slice(1)), 0);
  /** @type {number[]} */
  let outputShape = [];
  /** @type {Float32Array<ArrayBuffer>[]} */
  const parts = [];
  let nonFinite = 0;
  let window = Math.max(1, Math.floor(WINDOW_VALUES / valuesOfRow));
  for (let first = 0; first < rows; ) {
    if (abort.signal.aborted) throw new EngineError("aborted", "predicting was cancelled");
    const count = Math.min(window, rows - first);
    const from = first;
    const some = eachInput(input, x, (source) => ({
      shape: [count, ...source.shape.slice(1)],
      dtype: source.dtype,
      read: (/** @type {number} */ start, /** @type {number} */ n) => readRows(source, from + start, n),
    }));
    const { shape, data } = await session.predict(some);
    parts.push(/** @type {Float32Array<ArrayBuffer>} */ (data));
    for (const value of data) if (!Number.isFinite(value)) nonFinite++;
    outputShape = shape.slice(1);
    window = Math.min(window, Math.max(1, Math.floor(WINDOW_VALUES / (data.length / count))));
    first += count;
    await post("metrics", progressFrame(first, rows));
  }
  await timed("saveMs", () => post("predictions", new Blob([headerOf("outputs", [rows, ...outputShape]), ...parts])));
  const warnings = warned("predictions", { values: rows * size(outputShape), nonFinite });
  await postJson("result", { record: { ...recordOf(session), warnings }, final: { step: rows } });
}

/** The session's record with what the page did besides. @param {Awaited<ReturnType<typeof compile>>} session */
function recordOf({ record }) {
  return { ...record, timings: { ...record.timings, ...spent } };
}

/** Adds the time that something takes to what is `spent`. @param {keyof typeof spent} stage @param {() => Promise<unknown>} act */
async function timed(stage, act) {
  const started = performance.now();
  await act();
  spent[stage] += performance.now() - started;
}

/**
 * When the precision report is made: after the first losses, which it compares with a float64 run; at once where the run goes on behind them.
 * An attempt that goes on with the same bits has the report of an earlier one of its job, where that made one.
 * @param {Awaited<ReturnType<typeof compile>>} session @param {Job} job @param {{bitExact: boolean}|null} resumed
 * @returns {number} the step
 */
function reportIsDue(session, { spec, resume }, resumed) {
  if (spec.diagnostics === "none" || (resumed?.bitExact && resume?.measured)) return Infinity;
  return Math.min(FIRST_LOSSES, session.totalSteps);
}

/**
 * Runs to the end, with the precision report at its step and a checkpoint at every multiple of `checkpoint.every_steps`.
 * @param {Awaited<ReturnType<typeof compile>>} session
 * @param {any} spec
 * @param {number} diagnoseAt
 * @returns {Promise<object>} step and last values of the curves
 */
async function runInPieces(session, spec, diagnoseAt) {
  const metrics = new MetricsSender((frame) => post("metrics", frame), session.totalSteps);
  const checkpoints = new Uploads(sendCheckpoint);
  const everySteps = spec.checkpoint.every_steps ?? Infinity;
  const report = async () => {
    diagnoseAt = Infinity;
    await timed("reportMs", async () => postJson("diagnostics", await session.diagnose(spec.diagnostics)));
  };
  try {
    for (;;) {
      if (session.step >= diagnoseAt) await report();
      if (session.done) break;
      const stop = Math.min(session.step + everySteps - (session.step % everySteps), diagnoseAt, session.totalSteps);
      await session.run({ steps: stop - session.step, onTelemetry: (points) => metrics.add(points), signal: abort.signal });
      await metrics.flush();
      if (stop % everySteps === 0 && !session.done) {
        await timed("checkpointMs", () => checkpoints.add(`checkpoint?step=${stop}`, () => session.checkpoint()));
      }
    }
    if (everySteps < Infinity) await timed("checkpointMs", () => checkpoints.settled());
  } catch (error) {
    // The failure goes out last, and what fails besides does not hide it; but a checkpoint that was not taken is why a run was stopped.
    const [, taken] = await Promise.allSettled([metrics.flush(), checkpoints.settled()]);
    const code = error instanceof EngineError ? error.code : "";
    if (code === "aborted" && taken.status === "rejected") throw taken.reason;
    // A run that diverges is understood by its curve and by what its device computed.
    if (code === "non_finite_loss" && diagnoseAt < Infinity) await report();
    throw error;
  }
  return { step: session.step, loss: null, val_loss: null, val_accuracy: null, ...metrics.last };
}

/** One that is not taken ends the run. @param {string} path @param {Uint8Array<ArrayBuffer>} file */
async function sendCheckpoint(path, file) {
  try {
    await post(path, new Blob([file]));
  } catch (error) {
    abort.abort();
    throw error;
  }
}

/** @param {Job} job */
function dataOf(job) {
  const [y] = Object.values(job.data.targets);
  const [weight] = Object.values(job.data.weights);
  return { x: inputsOf(job), y: sourceOf(y), ...(weight && { weight: sourceOf(weight) }) };
}

/** The model's inputs: those that it names, or the only one. @param {Job} job @returns {ReturnType<typeof sourceOf>|Record<string, ReturnType<typeof sourceOf>>} */
function inputsOf({ spec, data: { inputs } }) {
  const { input } = spec.model;
  return unnamed(input, mapValues(shapesOf(input), (_, name) => sourceOf(inputs[arrayOf(name)])));
}

/** The engine's thread reads the array itself, window by window. @param {ArrayDescription} array */
function sourceOf({ shape, dtype, url, order }) {
  const source = { shape, dtype, url: address(url) };
  return order ? reordered(source, order) : source;
}

/** @param {any} error */
async function reportFailure(error) {
  if (error instanceof Fenced || fenced) return;
  const { code, message, field = null, detail = {} } = error;
  const { step = null } = detail;
  const failure = error instanceof EngineError ? { code, message } : { code: "internal", message: String(error?.stack ?? error) };
  await postJson("failure", { ...failure, field, step, detail }).catch((cause) => {
    if (!(cause instanceof Fenced)) throw cause;
  });
}

/** @param {string} path @returns {string} */
function address(path) {
  return new URL(path, document.baseURI).href;
}

/** @param {string} path */
async function get(path) {
  return answered(path, await fetch(address(path)));
}

/** @param {string} path @param {Blob | string} body a Blob where it is large: 64 MB took 0.5 s, an ArrayBuffer 46 s */
async function post(path, body) {
  return answered(path, await fetch(address(path), { method: "POST", body }));
}

/** @param {string} path @param {object} value its non-finite numbers become the strings "NaN", "Infinity", "-Infinity" */
function postJson(path, value) {
  return post(path, JSON.stringify(value, (_, item) => (Number.isFinite(item) || typeof item !== "number" ? item : String(item))));
}

/** @param {string} path @param {Response} response */
function answered(path, response) {
  if (response.status === 409) {
    fenced = true;
    abort.abort();
    throw new Fenced(path);
  }
  if (!response.ok) throw new Error(`${path}: the runner answered ${response.status}`);
  return response;
}
