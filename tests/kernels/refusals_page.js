// refusals_page.js: what the engine does where it can't train: other shaders, a context that is lost or never made.
import { compile, probe, train } from "../../browser_runtime/texelgrad.js";
import { Engine } from "../../browser_runtime/train/engine.js";
import { compileOn } from "./sessions.js";

const BUNDLE = new URL("../../shaders/bundle.json", import.meta.url).href;

/**
 * Trains with a bundle in which some texts are replaced, and gives the precision report.
 * @param {any} spec @param {any} x @param {any} y
 * @param {{file: string, from: string, to: string}[]} edits each `from` must be there
 * @param {{level?: "basic"|"full", steps?: number, device?: any}} [options]
 */
export async function withEditedShaders(spec, x, y, edits, { level = "basic", steps, device } = {}) {
  const bundle = await (await fetch(BUNDLE)).json();
  for (const { file, from, to } of edits) {
    if (!bundle[file]?.includes(from)) throw new Error(`${file} does not hold ${from}`);
    bundle[file] = bundle[file].replace(from, to);
  }
  const shaderUrl = URL.createObjectURL(new Blob([JSON.stringify(bundle)], { type: "application/json" }));
  const engine = await Engine.create({ shaderUrl, device });
  try {
    const session = await compileOn(engine, spec, { data: { x, y } }, device);
    /** @type {any[]} */
    const history = [];
    await session.run({ steps, onTelemetry: (points) => void history.push(...points) });
    return { history, report: await session.diagnose(level) };
  } finally {
    engine.device.dispose(); // a page has 16 contexts
    URL.revokeObjectURL(shaderUrl);
  }
}

/** @param {string} shaderUrl */
export function withShaderUrl(shaderUrl) {
  return probe({ shaderUrl });
}

/** @param {any} spec @param {any} x @param {any} y @param {any} options */
export async function run(spec, x, y, options) {
  const { record, history } = await train(spec, { x, y }, options);
  return { record, history, isolated: globalThis.crossOriginIsolated };
}

/** Calls `use` with every context that is made from now on. @param {(gl: any) => void} use @param {() => Promise<any>} during */
async function watchContexts(use, during) {
  const { getContext } = OffscreenCanvas.prototype;
  OffscreenCanvas.prototype.getContext = /** @type {any} */ (
    function (/** @type {any} */ ...args) {
      // @ts-ignore: `this` is the canvas
      const gl = getContext.apply(this, args);
      use(gl);
      return gl;
    }
  );
  try {
    return await during();
  } finally {
    OffscreenCanvas.prototype.getContext = getContext;
  }
}

/**
 * Loses the context at the first points of the curve, then compiles again at once.
 * @param {any} spec @param {any} x @param {any} y @param {any} device options that no other test uses, for a context of its own
 */
export function loseContext(spec, x, y, device) {
  /** @type {any[]} */
  const contexts = [];
  const options = { data: { x, y }, thread: /** @type {const} */ ("inline"), device };
  return watchContexts((gl) => contexts.push(gl), async () => {
    const lost = await compile(spec, options);
    const error = await lost
      .run({ onTelemetry: () => contexts[0].getExtension("WEBGL_lose_context")?.loseContext() })
      .then(() => null, (e) => e);
    const again = await compile(spec, options);
    await again.run();
    const after = await lost.getWeights().then(() => null, (e) => e);
    const outcome = { code: error?.code, message: error?.message, after: after?.code, contexts: contexts.length, step: again.step, textures: again.record.textures };
    await again.dispose();
    await lost.dispose();
    contexts[1].getExtension("WEBGL_lose_context")?.loseContext();
    return outcome;
  });
}

/** A browser whose canvases give no WebGL2. @param {any} device */
export async function withoutWebgl2(device) {
  const { getContext } = OffscreenCanvas.prototype;
  OffscreenCanvas.prototype.getContext = /** @type {any} */ (() => null);
  try {
    await probe({ thread: "inline", device });
  } finally {
    OffscreenCanvas.prototype.getContext = getContext;
  }
}

/** A context that can render to float textures only in name: what it renders comes back as a half float. @param {any} device */
export async function withHalfFloats(device) {
  const prototype = WebGL2RenderingContext.prototype;
  const { texStorage3D, readPixels } = prototype;
  prototype.texStorage3D = function (target, levels, format, ...size) {
    return texStorage3D.call(this, target, levels, format === this.RGBA32F ? this.RGBA16F : format, ...size);
  };
  try {
    await probe({ thread: "inline", device });
  } finally {
    Object.assign(prototype, { texStorage3D, readPixels });
  }
}

/** A context without EXT_color_buffer_float trains on integer textures. @param {any} spec @param {any} x @param {any} y @param {any} device */
export async function withoutFloatTargets(spec, x, y, device) {
  const prototype = WebGL2RenderingContext.prototype;
  const { getExtension } = prototype;
  prototype.getExtension = /** @type {any} */ (
    function (/** @type {string} */ name) {
      // @ts-ignore: `this` is the context
      return name === "EXT_color_buffer_float" ? null : getExtension.call(this, name);
    }
  );
  try {
    const record = await probe({ thread: "inline", device });
    const run = await train(spec, { x, y }, { thread: "inline", device });
    return { format: record.format, weights: run.weights };
  } finally {
    prototype.getExtension = getExtension;
  }
}
