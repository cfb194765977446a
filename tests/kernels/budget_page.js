// budget_page.js: counts what the engine asks of WebGL, by wrapping the context's prototype.
import { estimate } from "../../browser_runtime/texelgrad.js";
import { Engine } from "../../browser_runtime/train/engine.js";
import { compileOn } from "./sessions.js";

export { estimate };

const SHADERS = new URL("../../shaders/bundle.json", import.meta.url).href;

/** @typedef {Record<string, number>} Counts */

/** What the engine knows of its device. */
export async function deviceRecord() {
  const { device } = await Engine.create({ shaderUrl: SHADERS });
  const { record } = device;
  device.dispose();
  return record;
}

/** Counts every call of every context until `restore`. */
function wrap() {
  const prototype = /** @type {any} */ (WebGL2RenderingContext.prototype);
  /** @type {Counts} */
  const counts = {};
  /** Bytes of textures; reads that wait for the GPU: into client memory; render passes: draws into another framebuffer than the draw before. */
  const seen = { textureBytes: 0, clientReads: 0, passes: 0 };
  /** @type {{bound: any, drawn: any}} */
  const framebuffer = { bound: null, drawn: null };
  /** @type {Record<string, Function>} */
  const originals = {};
  for (const name of Object.getOwnPropertyNames(prototype)) {
    const method = Object.getOwnPropertyDescriptor(prototype, name)?.value;
    if (typeof method !== "function" || name === "constructor") continue;
    originals[name] = method;
    prototype[name] = function (/** @type {any[]} */ ...args) {
      counts[name] = (counts[name] ?? 0) + 1;
      if (name === "readPixels" && typeof args[6] === "object") seen.clientReads += 1;
      if (name === "bindFramebuffer") framebuffer.bound = args[1];
      if (name === "drawArrays" && framebuffer.drawn !== framebuffer.bound) {
        framebuffer.drawn = framebuffer.bound;
        seen.passes += 1;
      }
      if (name === "texStorage3D") seen.textureBytes += args[3] * args[4] * args[5] * ([this.R32I, this.R32F, this.R32UI].includes(args[2]) ? 4 : 16);
      return method.apply(this, args);
    };
  }
  return { counts, seen, restore: () => void Object.assign(prototype, originals) };
}

/** Objects made and not deleted. @param {Counts} counts @param {string[]} kinds */
function alive(counts, kinds = ["Texture", "Framebuffer", "Buffer", "Renderbuffer", "Query", "VertexArray"]) {
  const live = Object.fromEntries(kinds.map((kind) => [kind, (counts[`create${kind}`] ?? 0) - (counts[`delete${kind}`] ?? 0)]));
  return { ...live, Sync: (counts.fenceSync ?? 0) - (counts.deleteSync ?? 0) };
}

/**
 * A session from beginning to end: `warmup` steps, then `steps` whose calls are counted, then `more` steps, then dispose.
 * @param {any} spec @param {any} x @param {any} y
 * @param {{warmup: number, steps: number, more: number, chunk?: number, device?: any}} options `chunk`: steps of a burst, however long they
 *   take; chosen by their time without it
 */
export async function measure(spec, x, y, { warmup, steps, more, chunk, device }) {
  const engine = await Engine.create({ shaderUrl: SHADERS, device });
  const idle = { ...engine.device.live };
  const { counts, seen, restore } = wrap();
  try {
    const session = await compileOn(engine, spec, { data: { x, y } }, device);
    const compiled = { live: { ...engine.device.live }, textureBytes: seen.textureBytes };
    // What one flight of steps costs, telemetry and validation not counted.
    /** @type {{count: number, calls: Counts, passes: number}[]} */
    const flights = [];
    const submit = session.executable.submitTraining.bind(session.executable);
    session.executable.submitTraining = (count, line) => {
      const before = { ...counts };
      const passes = seen.passes;
      submit(count, line);
      flights.push({ count, calls: difference(counts, before), passes: seen.passes - passes });
    };
    if (chunk) Object.assign(session.pipeline, { chunkSteps: chunk, adapt() {} });
    await session.run({ steps: warmup });
    const before = { ...counts };
    const readsBefore = seen.clientReads;
    const first = flights.length;
    await session.run({ steps });
    const steady = difference(counts, before);
    const clientReads = seen.clientReads - readsBefore;
    const early = alive(counts);
    const { live } = engine.device;
    const earlyLive = { ...live };
    if (more > 0) await session.run({ steps: more });
    const result = {
      idle, compiled, flights, firstSteady: first, steady, clientReads, early, late: alive(counts), earlyLive, lateLive: { ...live },
      record: session.record,
    };
    session.dispose();
    return { ...result, disposed: { ...live }, disposedCounts: alive(counts) };
  } finally {
    restore();
    engine.device.dispose();
  }
}

/** @param {Counts} after @param {Counts} before @returns {Counts} */
function difference(after, before) {
  return Object.fromEntries(Object.entries(after).map(([name, count]) => [name, count - (before[name] ?? 0)]).filter(([, count]) => count !== 0));
}
