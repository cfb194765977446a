// texelgrad: the public module. GL runs in a Worker, so that the page that trains stays responsive; without OffscreenCanvas, or inside a
// Worker already, it runs here.
import { EngineError, isObject, shown } from "./errors.js";
import { validatePageSpec } from "./nn/spec_page.js";
import { checkOptions, OPTIONS } from "./train/options.js";
import { FIRST_LOSSES } from "./train/progress.js";
import { abandon, connect, open, threadOf } from "./train/remote.js";
import { unlessAborted } from "./train/waiting.js";

export { EngineError };
export { estimate } from "./train/estimate.js";
export { FIRST_LOSSES } from "./train/progress.js";

/** @import { Point } from "./train/pipeline.js" */
/** @import { Data } from "./train/data.js" */
/** @import { RunRecord } from "./train/run_record.js" */
/** @import { Weights } from "./train/weights.js" */
/** @import { Channel } from "./train/channel.js" */
/** @import { EngineProxy } from "./train/remote.js" */
/** @import { DeviceOptions, DeviceRecord } from "./backends/webgl2/device.js" */

/**
 * @typedef {object} EngineOptions
 * @property {string|URL} [shaderUrl] where the shader bundle is; default: shaders/bundle.json beside browser_runtime/
 * @property {"auto"|"worker"|"inline"} [thread] where GL runs
 * @property {DeviceOptions} [device] choices that are made from the device otherwise
 */

/**
 * @typedef {object} SessionOptions
 * @property {Data} [data] left out where the spec has `predict`: inputs [rows, ...shape], by name where the model has several, and targets: class numbers [rows], or values [rows, outputs]; where rows count differently, `weight` [rows], numbers of at least 0; in memory, read piece by piece by `read(start, count)`, which gives `count` rows from row `start` on, or at an address
 * @property {"auto"|"webgl2"} [backend] overrides the spec's
 * @property {Weights|Uint8Array} [initialWeights] instead of those that the seed gives, also as a safetensors file; with `fine_tune` only for its layers; needed where the spec has `predict`, or `fine_tune` and nothing is restored
 * @property {boolean} [allowSoftware] default: the spec's allow_software, or true: a renderer that draws on the CPU is used, and named in the record
 * @property {AbortSignal} [signal]
 *
 * @typedef {EngineOptions & SessionOptions} CompileOptions
 */

/**
 * A thread that starts or has started: the channel to it, and what ends every wait for it.
 * @typedef {{channel: Promise<Channel>, ended: Promise<never>, end: (why: EngineError) => void}} Opening
 */

/** Threads with an engine, or one that starts, and the code that it runs. @type {Map<string, Opening & {code: string, engine: Promise<EngineProxy>}>} */
const engines = new Map();

/** Threads that have code and no engine yet. @type {Map<string, Opening>} */
const preloads = new Map();

/** @param {"worker"|"inline"} thread @returns {Opening} */
function opening(thread) {
  /** @type {Opening["end"]} */
  let end = () => {};
  /** @type {Promise<never>} */
  const ended = new Promise((_, reject) => (end = reject));
  ended.catch(() => {}); // nobody may wait
  return { channel: open(thread), ended, end };
}

/** Where the bundle is, the thread, and what code from there is known by. @param {EngineOptions} options */
function codeOf({ shaderUrl, thread = "auto" }) {
  const url = shaderUrl === undefined ? new URL("../shaders/bundle.json", import.meta.url).href : bundleAt(shaderUrl);
  const kind = threadOf(thread);
  return { shaderUrl: url, thread: kind, code: JSON.stringify([url, kind]) };
}

/** One engine, and so one WebGL context, for each way of starting it. @param {EngineOptions} options @returns {Promise<EngineProxy>} */
function engineFor({ device = {}, ...options }) {
  const { shaderUrl, thread, code } = codeOf(options);
  const key = JSON.stringify([code, device]);
  const there = engines.get(key);
  if (there) return there.engine;
  const opened = preloads.get(code) ?? opening(thread);
  preloads.delete(code);
  const started = { ...opened, code, engine: Promise.race([connect(opened.channel, { shaderUrl, device }), opened.ended]) };
  engines.set(key, started);
  // A context that could not be made, or was lost, is asked for again next time.
  const forget = () => void (engines.get(key) === started && engines.delete(key));
  started.engine.then((engine) => engine.onEnd(forget), forget);
  return started.engine;
}

/** @param {string|URL} shaderUrl as the page means it @returns {string} */
function bundleAt(shaderUrl) {
  try {
    return new URL(shaderUrl, globalThis.location?.href).href;
  } catch (cause) {
    throw new EngineError("spec_invalid", `options.shaderUrl: ${shown(shaderUrl)} is no address`, { field: "options.shaderUrl", cause });
  }
}

/** The engine, and the spec with what the options say of it; checked while the engine starts.
 * @param {any} spec @param {CompileOptions} options @param {{measures?: boolean}} [call] see validatePageSpec() */
function begin(spec, options, call) {
  const engine = engineFor(options);
  const { backend } = options;
  return { engine, validated: validatePageSpec(backend && isObject(spec) ? { ...spec, backend } : spec, call) };
}

/** The same for what runs at once: no checkpoint will be restored. @type {typeof begin} */
function beginRun(spec, options, call) {
  const begun = begin(spec, options, call);
  if (begun.validated.fine_tune === null || options.initialWeights !== undefined) return begun;
  throw new EngineError("data_invalid", "initialWeights: fine_tune needs the weights of a trained model", { field: "initialWeights" });
}

/** @param {ReturnType<typeof begin>} begun @param {CompileOptions} options */
async function sessionOn({ engine, validated }, { data, initialWeights, signal, allowSoftware = validated.allow_software ?? true }) {
  const up = await unlessAborted(engine, signal);
  return up.compile(validated, { data, initialWeights, allowSoftware, signal });
}

/**
 * Loads what the first call of the page waits for: the engine's Worker with its modules, and the shaders. Makes nothing: no context, no session.
 * @param {Pick<EngineOptions, "shaderUrl"|"thread">} [options] as the calls to come have them
 * @returns {Promise<void>}
 * @throws {EngineError} as `compile` does where something can't be loaded; whoever calls it again, or compiles, tries again
 */
export async function preload(options = {}) {
  checkOptions(options, OPTIONS.preload);
  const { shaderUrl, thread, code } = codeOf(options);
  let opened = preloads.get(code) ?? [...engines.values()].find((started) => started.code === code);
  if (!opened) preloads.set(code, (opened = opening(thread)));
  const { channel, ended } = opened;
  try {
    await Promise.race([channel.then((up) => up.send("load", { shaderUrl })), ended]);
  } catch (error) {
    // Unless an engine is made there, which fails itself.
    if (preloads.get(code) === opened) {
      preloads.delete(code);
      abandon(channel, /** @type {EngineError} */ (error));
    }
    throw error;
  }
}

/**
 * The device that would train: made, proved to render float32, and kept for `compile`.
 * @param {EngineOptions} [options]
 * @returns {Promise<DeviceRecord>}
 */
export async function probe(options = {}) {
  checkOptions(options, OPTIONS.probe);
  return (await engineFor(options)).probe();
}

/**
 * Compiles a job spec for some data: validates, plans, builds the programs, uploads data and initial weights.
 * @param {any} spec the job spec, the JSON of the HTTP API
 * @param {CompileOptions} [options] only a spec with `predict` needs none
 * @returns {Promise<import("./train/remote.js").SessionProxy>}
 * @throws {EngineError} with `code`, and `field` where the spec, the data or an option is at fault
 */
export async function compile(spec, options = {}) {
  checkOptions(options, OPTIONS.compile);
  return sessionOn(begin(spec, options), options);
}

/**
 * The short way: compile, run to the end, read, dispose.
 * @param {any} spec
 * @param {Data} data
 * @param {Omit<CompileOptions, "data"> & {onTelemetry?: (points: Point[]) => void|Promise<void>}} [options]
 * @returns {Promise<{weights: Weights, history: Point[], record: RunRecord}>}
 */
export async function train(spec, data, options = {}) {
  checkOptions(options, OPTIONS.train);
  const { onTelemetry, ...rest } = options;
  const session = await sessionOn(beginRun(spec, rest, { measures: true }), { ...rest, data });
  try {
    /** @type {Point[]} */
    const history = [];
    await session.run({
      signal: options.signal,
      onTelemetry: (points) => {
        history.push(...points);
        return onTelemetry?.(points);
      },
    });
    return { weights: await session.getWeights(), history, record: session.record };
  } finally {
    await session.dispose();
  }
}

/**
 * The precision report: of the device, and of a spec's operators and first losses on some data.
 * @param {any} spec @param {CompileOptions & {level?: "basic"|"full"}} [options]
 */
export async function diagnose(spec, options = {}) {
  checkOptions(options, OPTIONS.diagnose);
  const { level, ...rest } = options;
  const session = await sessionOn(beginRun(spec, rest), rest);
  try {
    await session.run({ steps: FIRST_LOSSES, signal: options.signal });
    return await session.diagnose(level);
  } finally {
    await session.dispose();
  }
}

/** Ends every engine that this page started, or is starting: its Worker, WebGL context and sessions; and what was loaded for one. */
export async function release() {
  const started = [...engines.values()];
  const loaded = [...preloads.values()];
  engines.clear();
  preloads.clear();
  const why = new EngineError("disposed", "the engine was released while it started");
  for (const { end } of [...started, ...loaded]) end(why);
  for (const { channel } of loaded) abandon(channel, why);
  await Promise.allSettled(started.map(({ channel, engine }) => engine.then((up) => up.release(), () => abandon(channel, why))));
}
