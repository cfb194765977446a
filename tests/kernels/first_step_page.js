// first_step_page.js: what test_first_step.py needs to see of how a session gets to its first step, in this thread.
import { Engine } from "../../browser_runtime/train/engine.js";
import { compileOn } from "./sessions.js";

const SHADERS = "/shaders/bundle.json";

/** The file of a kernel: the last one whose header is in the text. @param {string} text */
const kernelOf = (text) => [...text.matchAll(/^\/\/ (\w+): /gm)].map(([, name]) => name).find((name) => !["step", "math"].includes(name)) ?? "proof";

/**
 * Kernels whose programs were compiled when compile() was done, when the first loss was there, and a step later.
 * @param {any} spec @param {any} x @param {any} y
 */
export async function compiled(spec, x, y) {
  const engine = await Engine.create({ shaderUrl: SHADERS });
  try {
    const { cache } = engine.device.programs;
    const kernels = () => [...cache.keys()].map(kernelOf).sort();
    const session = await compileOn(engine, spec, { data: { x, y } });
    const atCompile = kernels();
    /** @type {string[]} */
    let atFirstLoss = [];
    await session.run({ steps: 1, onTelemetry: () => void (atFirstLoss = kernels()) });
    await new Promise((resolve) => setTimeout(resolve)); // behind the end of the run
    const later = kernels();
    session.dispose();
    return { atCompile, atFirstLoss, later };
  } finally {
    engine.device.dispose();
  }
}

/**
 * Losses, weights, and the rows of the first epoch as they lie on the device, with that epoch uploaded in its order, or gathered there.
 * @param {any} spec @param {any} x @param {any} y @param {boolean} gathered @param {any} device
 */
export async function run(spec, x, y, gathered, device) {
  const engine = await Engine.create({ shaderUrl: SHADERS, device });
  try {
    const session = await compileOn(engine, spec, { data: { x, y } }, device);
    const feeder = /** @type {any} */ (session.feeder);
    const held = feeder.held !== null;
    if (gathered) feeder.held = null;
    /** @type {any[]} */
    const history = [];
    const onTelemetry = (/** @type {any[]} */ points) => void history.push(...points.map(({ loss }) => loss));
    await session.run({ steps: 1, onTelemetry });
    const { batch } = session.executable.sizes;
    const { lowered, tensors } = session.executable;
    const rows = lowered.fed.flatMap((name) => [...tensors.readEpoch(name, 0, session.batches.perEpoch * batch)]);
    await session.run({ onTelemetry });
    const weights = session.weightsFile();
    session.dispose();
    return { held, history, rows: Float32Array.from(rows), weights };
  } finally {
    engine.device.dispose();
  }
}

/** All that the textures of parameters and their states hold after a step, padding too. @param {any} spec @param {any} x @param {any} y @param {number} steps */
export async function texels(spec, x, y, steps) {
  const engine = await Engine.create({ shaderUrl: SHADERS });
  try {
    const session = await compileOn(engine, spec, { data: { x, y } });
    await session.run({ steps });
    const { plan, executable } = session;
    const names = plan.parameters.flatMap(({ tensor }) => [tensor, ...plan.states.map((state) => `${tensor}.${state}`)]);
    const found = Object.fromEntries(names.map((name) => [name, executable.tensors.readTensor(name).texels]));
    session.dispose();
    return found;
  } finally {
    engine.device.dispose();
  }
}

/** What is alive on the device after a session that could not be made, and the error's code. @param {any} spec @param {any} x @param {any} y */
export async function refused(spec, x, y) {
  const engine = await Engine.create({ shaderUrl: SHADERS });
  try {
    const before = { ...engine.device.live };
    const code = await compileOn(engine, spec, { data: { x, y } }).then(() => null, (error) => error.code);
    // Its programs may still be linked; what was started is waited for by the next session.
    const session = await compileOn(engine, spec, { data: { x: { shape: x.shape, data: x.data.map((/** @type {number} */ v) => (Number.isFinite(v) ? v : 0)) }, y } });
    await session.run({ steps: 2 });
    const { step } = session;
    session.dispose();
    engine.device.check();
    const { peakTextureBytes: _, ...after } = engine.device.live;
    const { peakTextureBytes: __, ...idle } = before;
    return { code, step, before: idle, after };
  } finally {
    engine.device.dispose();
  }
}

/** An engine that finds no shaders: the error's code, and whether the contexts that were made for it are given back. */
export async function withoutShaders() {
  const { getContext } = OffscreenCanvas.prototype;
  /** @type {any[]} */
  const contexts = [];
  OffscreenCanvas.prototype.getContext = function (/** @type {any[]} */ ...args) {
    const context = Reflect.apply(getContext, this, args);
    contexts.push(context);
    return context;
  };
  try {
    const code = await Engine.create({ shaderUrl: "/nowhere.json" }).then(() => null, (error) => error.code);
    return { code, lost: contexts.map((gl) => gl.isContextLost()) };
  } finally {
    OffscreenCanvas.prototype.getContext = getContext;
  }
}
