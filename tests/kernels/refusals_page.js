// refusals_page.js: what the engine does where it can't train: other shaders, a context that is lost or never made.
import { compile, estimate, probe, train } from "../../browser_runtime/texelgrad.js";
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

/** What train() takes without validation rows. @param {any} spec */
const unmeasured = (spec) => ({ ...spec, metrics: [] });

/** @param {string} shaderUrl */
export function withShaderUrl(shaderUrl) {
  return probe({ shaderUrl });
}

/** @param {any} spec @param {any} x @param {any} y @param {any} options */
export async function run(spec, x, y, options) {
  const { record, history } = await train(unmeasured(spec), { x, y }, options);
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
    const run = await train(unmeasured(spec), { x, y }, { thread: "inline", device });
    return { format: record.format, weights: run.weights };
  } finally {
    prototype.getExtension = getExtension;
  }
}

/** The rows of an array, read piece by piece, with values more or fewer at the end of each piece. @param {any} array @param {number} more */
function miscounting({ shape, data, dtype }, more) {
  const columns = data.length / shape[0];
  const read = (/** @type {number} */ start, /** @type {number} */ count) => Array.from({ length: count * columns + more }, (_, i) => data[start * columns + i] ?? 0);
  return { shape, dtype, read };
}

/**
 * Compiles, evaluates or predicts with a source that gives another number of values than it was asked for.
 * @param {any} spec @param {any} data @param {"compile"|"evaluate"|"predict"} method @param {string[]} path where in the data that source is @param {number} more values
 * @param {any} options of compile
 */
export async function miscounted(spec, data, method, path, more, options) {
  const [key, name] = path;
  const part = name ? { ...data[key], [name]: miscounting(data[key][name], more) } : miscounting(data[key], more);
  const given = { ...data, [key]: part };
  const session = await compile(spec, { ...options, data: method === "compile" ? given : data });
  try {
    if (method === "evaluate") await session.evaluate(given);
    if (method === "predict") await session.predict(given.x);
  } finally {
    await session.dispose();
  }
}

/** Data with something else beside x and y. @param {any} spec @param {any} data @param {"compile"|"evaluate"|"estimate"} method */
export async function unknownData(spec, data, method) {
  if (method === "estimate") return estimate(spec, data);
  const { x, y } = data;
  const session = await compile(spec, { data: method === "compile" ? data : { x, y } });
  return session.evaluate(data).finally(() => session.dispose());
}

/** A source that never answers; `asked` resolves once it was asked, `answer` answers late. @param {any} array */
function silent({ shape, data, dtype }) {
  let answer = () => {};
  /** @type {(value?: unknown) => void} */
  let wasAsked;
  const asked = new Promise((resolve) => (wasAsked = resolve));
  const read = () => {
    wasAsked();
    return new Promise((resolve) => (answer = () => resolve(data)));
  };
  return { source: { shape, dtype, read }, asked, answer: () => answer() };
}

/**
 * Aborts a compile that waits for a source which never answers, beside a session that goes on.
 * @param {any} spec @param {any} data @param {"x"|"y"|"weight"} key of that source @param {any} options of compile
 */
export async function abortedWhileReading(spec, data, key, options) {
  const beside = await compile(spec, { ...options, data });
  const { source, asked, answer } = silent(data[key]);
  const controller = new AbortController();
  const compiling = compile(spec, { ...options, data: { ...data, [key]: source }, signal: controller.signal }).then(() => null, (e) => e);
  await asked;
  controller.abort();
  const error = await compiling;
  await beside.run();
  answer(); // nobody waits for it any more
  const after = await train(unmeasured(spec), data, options);
  const weights = [await beside.getWeights(), after.weights];
  await beside.dispose();
  return { code: error?.code, weights };
}

/** The same at an address that never answers, with the textures that are left of it. @param {any} spec @param {any} x @param {any} y @param {any} device as in loseContext */
export function abortedWhileFetching(spec, x, y, device) {
  const textures = new Set();
  const watch = (/** @type {any} */ gl) => {
    const { createTexture, deleteTexture } = gl;
    gl.createTexture = () => {
      const texture = createTexture.call(gl);
      textures.add(texture);
      return texture;
    };
    gl.deleteTexture = (/** @type {any} */ texture) => {
      textures.delete(texture);
      deleteTexture.call(gl, texture);
    };
  };
  const options = { thread: /** @type {const} */ ("inline"), device };
  return watchContexts(watch, async () => {
    const { fetch } = globalThis;
    const controller = new AbortController();
    await probe(options);
    const before = textures.size;
    let held = 0;
    let given = /** @type {AbortSignal|null|undefined} */ (null);
    globalThis.fetch = async (url, init) => {
      if (url !== "http://silent.test/x") return fetch(url, init);
      given = init?.signal;
      held = textures.size;
      controller.abort();
      return new Promise(() => {});
    };
    try {
      const data = { x: { shape: x.shape, url: "http://silent.test/x" }, y };
      const error = await compile(spec, { ...options, data, signal: controller.signal }).then(() => null, (e) => e);
      return { code: error?.code, ended: given?.aborted, held: held - before, left: textures.size - before };
    } finally {
      globalThis.fetch = fetch;
    }
  });
}
