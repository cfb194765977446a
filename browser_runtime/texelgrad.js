// texelgrad: the public module. GL runs in a Worker, so that the page that trains stays responsive; without OffscreenCanvas, or inside a
// Worker already, it runs here.
import { EngineError } from "./errors.js";
import { validateSpec } from "./nn/spec.js";
import { FIRST_LOSSES } from "./train/progress.js";
import { connect } from "./train/remote.js";

export { EngineError };
export { estimate } from "./train/estimate.js";
export { FIRST_LOSSES } from "./train/progress.js";

/** @import { Point } from "./train/pipeline.js" */
/** @import { Data } from "./train/data.js" */
/** @import { RunRecord } from "./train/run_record.js" */
/** @import { Weights } from "./train/weights.js" */
/** @import { DeviceOptions, DeviceRecord } from "./backends/webgl2/device.js" */

/**
 * @typedef {object} CompileOptions
 * @property {Data} [data] left out where the spec has `predict`: inputs [rows, ...shape], by name where the model has several, and targets: class numbers [rows], or values [rows, outputs]; where rows count differently, `weight` [rows], numbers of at least 0; in memory, read piece by piece, or at an address
 * @property {"auto"|"webgl2"} [backend] overrides the spec's
 * @property {string} [shaderUrl] where the shader bundle is; default: shaders/bundle.json beside browser_runtime/
 * @property {Weights|Uint8Array} [initialWeights] instead of those that the seed gives, also as a safetensors file; with `fine_tune` only for its layers; needed where the spec has `predict`, or `fine_tune` and nothing is restored
 * @property {boolean} [allowSoftware] default: the spec's allow_software, or true: a renderer that draws on the CPU is used, and named in the record
 * @property {AbortSignal} [signal]
 * @property {"auto"|"worker"|"inline"} [thread] where GL runs
 * @property {DeviceOptions} [device] choices that are made from the device otherwise
 */

/** @type {Map<string, Promise<import("./train/remote.js").EngineProxy>>} */
const engines = new Map();

const OPTIONS = ["data", "backend", "shaderUrl", "initialWeights", "allowSoftware", "signal", "thread", "device"];
const THREADS = ["auto", "worker", "inline"];
const LEVELS = ["basic", "full"];
/** @type {Record<string, unknown[]>} */
const DEVICE_OPTIONS = { format: ["rgba32f", "rgba32ui"], fetch: ["texture", "texelFetch"], maxDrawBuffers: [1, 2, 3, 4, 5, 6, 7, 8], convolution: ["direct", "im2col"] };

/** A misspelt option would otherwise be as good as none. @param {Record<string, any>} given @param {string[]} legal */
function checkOptions(given, legal) {
  const bad = (/** @type {string} */ field, /** @type {unknown} */ value, /** @type {unknown[]} */ values) => {
    return new EngineError("spec_invalid", `options.${field}: ${JSON.stringify(value)} is not legal; legal: ${values.join(", ")}`, { field: `options.${field}` });
  };
  const unknown = Object.keys(given).find((name) => !legal.includes(name));
  if (unknown) throw new EngineError("spec_invalid", `options.${unknown} is unknown; legal: ${legal.join(", ")}`, { field: `options.${unknown}` });
  const { thread = "auto", level = "basic", device = {} } = given;
  if (!THREADS.includes(thread)) throw bad("thread", thread, THREADS);
  if (!LEVELS.includes(level)) throw bad("level", level, LEVELS);
  for (const [name, value] of Object.entries(device)) {
    if (name === "rows" || (name === "residentBytes" && Number.isFinite(value) && value >= 0)) continue;
    if (!Object.hasOwn(DEVICE_OPTIONS, name)) throw bad("device", name, [...Object.keys(DEVICE_OPTIONS), "residentBytes", "rows"]);
    if (!DEVICE_OPTIONS[name].includes(value)) throw bad(`device.${name}`, value, DEVICE_OPTIONS[name]);
  }
}

/** One engine, and so one WebGL context, for each way of starting it. @param {Partial<CompileOptions>} options */
function engineFor({ shaderUrl, thread = "auto", device = {} }) {
  const url = new URL(shaderUrl ?? "../shaders/bundle.json", shaderUrl ? globalThis.location?.href : import.meta.url).href;
  const key = JSON.stringify([url, thread, device]);
  let engine = engines.get(key);
  if (!engine) {
    engine = connect({ shaderUrl: url, thread, device });
    engines.set(key, engine);
    // A context that could not be made, or was lost, is asked for again next time.
    const forget = () => void (engines.get(key) === engine && engines.delete(key));
    engine.then((e) => e.onEnd(forget), forget);
  }
  return engine;
}

/**
 * The device that would train: made, proved to render float32, and kept for `compile`.
 * @param {Partial<CompileOptions>} [options]
 * @returns {Promise<DeviceRecord>}
 */
export async function probe(options = {}) {
  checkOptions(options, OPTIONS);
  return (await engineFor(options)).probe();
}

/**
 * Compiles a job spec for some data: validates, plans, builds the programs, uploads data and initial weights.
 * @param {any} spec the job spec, the JSON of the HTTP API
 * @param {CompileOptions} options
 * @returns {Promise<import("./train/remote.js").SessionProxy>}
 * @throws {EngineError} with `code`, and `field` where the spec or the data is at fault
 */
export async function compile(spec, options) {
  checkOptions(options ?? {}, OPTIONS);
  const { data, backend, initialWeights, allowSoftware = spec?.allow_software ?? true, signal } = options ?? {};
  const engine = engineFor(options ?? {});
  const validated = validateSpec({ ...spec, ...(backend && { backend }) }); // while the engine starts
  return (await engine).compile(validated, { data, initialWeights, allowSoftware, signal });
}

/**
 * The short way: compile, run to the end, read, dispose.
 * @param {any} spec
 * @param {Data} data
 * @param {Omit<CompileOptions, "data"> & {onTelemetry?: (points: Point[]) => void|Promise<void>}} [options]
 * @returns {Promise<{weights: Weights, history: Point[], record: RunRecord}>}
 */
export async function train(spec, data, options = {}) {
  const { onTelemetry, ...rest } = options;
  const session = await compile(spec, { ...rest, data });
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
 * @param {any} spec @param {CompileOptions & {level?: "basic"|"full"}} options
 */
export async function diagnose(spec, options) {
  checkOptions(options, [...OPTIONS, "level"]);
  const { level, ...rest } = options;
  const session = await compile(spec, rest);
  try {
    await session.run({ steps: FIRST_LOSSES });
    return await session.diagnose(level);
  } finally {
    await session.dispose();
  }
}

/** Ends every engine that this page started: its Worker, WebGL context and sessions. */
export async function release() {
  const started = [...engines.values()];
  engines.clear();
  await Promise.allSettled(started.map(async (engine) => (await engine).release()));
}
