// texelgrad: the public module. GL runs in a Worker, so that the page that trains stays responsive; without OffscreenCanvas, or inside a
// Worker already, it runs here.
import { EngineError } from "./errors.js";
import { connect } from "./train/remote.js";

export { EngineError };
export { estimate } from "./train/session.js";

/** @import { ArraySource } from "./train/data.js" */
/** @import { Point, RunRecord, Weights } from "./train/session.js" */
/** @import { DeviceOptions, DeviceRecord } from "./backends/webgl2/device.js" */

/**
 * @typedef {object} CompileOptions
 * @property {{x: ArraySource, y: ArraySource}} data inputs [rows, ...model.input] and targets: class numbers [rows], or values [rows, outputs]
 * @property {"auto"|"webgl2"} [backend] overrides the spec's
 * @property {string} [shaderUrl] where the shader bundle is; default: shaders/bundle.json beside browser_runtime/
 * @property {Weights} [initialWeights] instead of those that the seed gives
 * @property {boolean} [allowSoftware] default true: a renderer that draws on the CPU is used, and named in the record
 * @property {AbortSignal} [signal]
 * @property {"auto"|"worker"|"inline"} [thread] where GL runs
 * @property {DeviceOptions} [device] choices that are made from the device otherwise
 */

/** @type {Map<string, Promise<import("./train/remote.js").EngineProxy>>} */
const engines = new Map();

/** One engine, and so one WebGL context, for each way of starting it. @param {Partial<CompileOptions>} options */
function engineFor({ shaderUrl, thread = "auto", device = {} }) {
  const url = new URL(shaderUrl ?? "../shaders/bundle.json", shaderUrl ? globalThis.location?.href : import.meta.url).href;
  const key = JSON.stringify([url, thread, device]);
  let engine = engines.get(key);
  if (!engine) {
    engine = connect({ shaderUrl: url, thread, device });
    engines.set(key, engine);
    // A context that could not be made, or was lost, is asked for again next time.
    engine.then((e) => e.onEnd(() => engines.delete(key)), () => engines.delete(key));
  }
  return engine;
}

/**
 * The device that would train: made, proved to render float32, and kept for `compile`.
 * @param {Partial<CompileOptions>} [options]
 * @returns {Promise<DeviceRecord>}
 */
export async function probe(options = {}) {
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
  const { data, backend, initialWeights, allowSoftware = true, signal } = options ?? {};
  const engine = await engineFor(options ?? {});
  return engine.compile({ ...spec, ...(backend && { backend }) }, { data, initialWeights, allowSoftware, signal });
}

/**
 * The short way: compile, run to the end, read, dispose.
 * @param {any} spec
 * @param {{x: ArraySource, y: ArraySource}} data
 * @param {Omit<CompileOptions, "data"> & {onTelemetry?: (points: Point[]) => void|Promise<void>}} [options]
 * @returns {Promise<{weights: Weights, history: Point[], record: RunRecord}>}
 */
export async function train(spec, data, options = {}) {
  const session = await compile(spec, { ...options, data });
  try {
    /** @type {Point[]} */
    const history = [];
    await session.run({
      signal: options.signal,
      onTelemetry: (points) => {
        history.push(...points);
        return options.onTelemetry?.(points);
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
  const session = await compile(spec, options);
  try {
    await session.run({ steps: 10 });
    return await session.diagnose(options.level);
  } finally {
    await session.dispose();
  }
}
