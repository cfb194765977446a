// edges_page.js: what test_edges.py needs of the engine in this thread: shaders edited on purpose, small staging tensors, calls in between.
import { compile as compilePublic, estimate } from "../../browser_runtime/texelgrad.js";
import { Device } from "../../browser_runtime/backends/webgl2/device.js";
import { texelOf } from "../../browser_runtime/backends/webgl2/layout.js";
import { Engine } from "../../browser_runtime/train/engine.js";
import { compileOn } from "./sessions.js";

const bundle = async () => (await fetch(new URL("../../shaders/bundle.json", import.meta.url))).json();

/** Restores a checkpoint on a device whose shader was edited. @param {any} spec @param {any} x @param {any} y @param {string} file @param {[string, string]|null} edit */
export async function restoreElsewhere(spec, x, y, file, edit) {
  const shaders = await bundle();
  const first = new Device(shaders);
  const second = new Device(edit ? { ...shaders, [file]: shaders[file].replace(...edit) } : shaders);
  try {
    const one = await compileOn(new Engine(first), spec, { data: { x, y } });
    await one.run({ steps: 3 });
    const other = await compileOn(new Engine(second), spec, { data: { x, y } });
    return other.restore(one.checkpoint());
  } finally {
    first.dispose();
    second.dispose();
  }
}

/** Runs with staging tensors and telemetry so small that one validation spans several chunks. @param {any} spec @param {any} x @param {any} y */
export async function validateInParts(spec, x, y) {
  const device = new Device(await bundle());
  try {
    const session = await compileOn(new Engine(device), spec, { data: { x, y } });
    const { executable } = session;
    executable.sizes = { ...executable.sizes, stage: 16, evaluateSlots: 1 };
    /** @type {any[]} */
    const history = [];
    await session.run({ onTelemetry: (points) => void history.push(...points) });
    return history;
  } finally {
    device.dispose();
  }
}

/** Calls a method while the session trains. @param {any} spec @param {any} x @param {any} y @param {string} method @param {any} argument */
export async function during(spec, x, y, method, argument) {
  const session = await compilePublic(spec, { data: { x, y }, thread: "inline" });
  try {
    const given = argument === "checkpoint" ? await session.checkpoint() : argument === "weights" ? await session.getWeights() : argument;
    /** @type {any[]} */
    const history = [];
    const running = session.run({ onTelemetry: (points) => void history.push(...points) });
    const refused = await /** @type {any} */ (session)[method](given).then(() => null, (/** @type {any} */ error) => error.code);
    await running;
    return { refused, steps: history.map(({ step }) => step) };
  } finally {
    await session.dispose();
  }
}

/** @param {any} spec @param {any} x @param {any} y @param {any} options */
export async function compile(spec, x, y, options) {
  const session = await compilePublic(spec, { data: { x, y }, ...options });
  await session.dispose();
}

/** Listeners that calls leave on one signal. @param {any} spec @param {any} x @param {any} y */
export async function listenersLeft(spec, x, y) {
  const controller = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = controller.signal;
  Object.assign(controller.signal, {
    addEventListener: (/** @type {any[]} */ ...args) => (listeners++, addEventListener.apply(controller.signal, /** @type {any} */ (args))),
    removeEventListener: (/** @type {any[]} */ ...args) => (listeners--, removeEventListener.apply(controller.signal, /** @type {any} */ (args))),
  });
  const session = await compilePublic(spec, { data: { x, y }, signal: controller.signal });
  for (let i = 0; i < 3; i++) await session.run({ steps: 1, signal: controller.signal });
  await session.dispose();
  return listeners;
}

/** Values in the padding of a parameter after a step from weights of which one is infinite. @param {any} spec @param {any} x @param {any} y @param {string} name */
export async function paddingAfterInfinity(spec, x, y, name) {
  const device = new Device(await bundle());
  try {
    const session = await compileOn(new Engine(device), spec, { data: { x, y } });
    const weights = session.getWeights();
    weights[name].data[0] = Infinity;
    session.takeWeights(weights);
    await session.run({ steps: 2 });
    const { executable, plan } = session;
    return plan.parameters.map(({ tensor, shape }) => {
      const { texels, data, bias } = executable.tensors.readTensor(tensor);
      const { slots, layout } = executable.tensors.place(tensor);
      const live = (/** @type {Iterable<number>} */ values) => [...values].filter((v) => v !== 0).length;
      let stored = 0;
      for (let row = 0; row < layout.layers * layout.groups; row++) {
        const at = texelOf(layout, executable.lowered.slots[slots[0]], row) * 4;
        stored += live(texels.subarray(at, at + layout.texelsPerRow * 4));
      }
      return { tensor, shape, stray: stored - live(data) - live(/** @type {Float32Array} */ (bias)) };
    });
  } finally {
    device.dispose();
  }
}

/** @param {any} spec @param {any} shapes */
export const estimated = (spec, shapes) => estimate(spec, shapes);
