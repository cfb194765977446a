// The bench's page: one contender on one workload, as the task says that the server holds. Driven by run.py through `texelgradPage`.
import { countCalls } from "./gl_counter.js";
import { calibrate } from "./timing.js";

/** @import { Contender, Training } from "./timing.js" */

/**
 * @typedef {object} Task
 * @property {import("./workloads.js").Workload} workload
 * @property {"texelgrad"|"tfjs"|"jax-js"} library @property {string} backend
 * @property {number} budgetMs how long to measure
 * @property {number} checkSteps losses that are wanted one by one @property {number} checkMs after which fewer than that will do, but 3
 * @property {any} options of our engine
 * @property {number} [pieceSteps] of a soak
 */

const now = () => performance.now();
const MIN_CHECKED = 3;
const COUNT_MS = 1000;
/** Before the first step, so that a browser that has just started has done what it does besides. */
const REST_MS = 500;

/** @returns {Promise<Task>} */
const fetchTask = async () => (await fetch("task")).json();

/** @param {Task} task @param {any} [more] options of our engine @returns {Promise<Contender>} */
async function loadContender({ library, backend, options }, more = {}) {
  if (library === "texelgrad") return (await import("./texelgrad.js")).load({ backend, ...options, ...more });
  if (backend === "webgpu" && !(await /** @type {any} */ (navigator).gpu?.requestAdapter())) throw new Error("no WebGPU adapter");
  return (await import(library === "tfjs" ? "./peers/tfjs.js" : "./peers/jax_js.js")).load(backend);
}

/** @type {Task} */
let task;
/** @type {() => Promise<Training>} */
let start;
/** @type {Training} */
let training;
let steps = 0;

/** Loads the library, takes the first steps one by one, and finds how many fill the budget. */
async function prepare() {
  task = await fetchTask();
  let started = now();
  const contender = await loadContender(task);
  const loadMs = now() - started;
  start = contender.prepare(task.workload);
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  started = now();
  training = await start();
  const losses = [await training.run(1)];
  const firstStepMs = now() - started;
  started = now();
  while (losses.length < task.checkSteps && (losses.length < MIN_CHECKED || now() - started < task.checkMs)) losses.push(await training.run(1));
  steps = await calibrate(training, task.budgetMs);
  return { loadMs, firstStepMs, losses, facts: training.facts() };
}

/** Trains in steady state; the loss is read once, at the end. */
async function measure() {
  const started = now();
  const loss = await training.run(steps);
  return { ms: now() - started, steps, loss, facts: training.facts() };
}

/** The same training once more in the same page: its first step, with everything warm. */
async function again() {
  await training.dispose();
  const started = now();
  training = await start();
  await training.run(1);
  return { firstStepMs: now() - started };
}

/** In a page of its own: calls, draws and bytes a step, counted from outside and in this thread. */
async function count() {
  task = await fetchTask();
  const counts = countCalls();
  const contender = await loadContender(task, { thread: "inline" });
  training = await contender.prepare(task.workload)();
  await training.run(1);
  const started = now();
  await training.run(1);
  const counted = Math.min(100, Math.max(2, Math.floor(COUNT_MS / (now() - started))));
  const { calls, draws } = counts;
  await training.run(counted);
  return { callsPerStep: (counts.calls - calls) / counted, drawsPerStep: (counts.draws - draws) / counted, peakBytes: counts.peakBytes, facts: training.facts() };
}

/**
 * Our engine with its losses summed and read, and with neither, in turns: what that costs. Without them it waits for the end of each chunk all
 * the same, or all steps would be submitted at once, which takes a few hundredths less on a CPU whatever is read.
 */
async function telemetry() {
  task = await fetchTask();
  const [{ Executable }, { signalled }] = await Promise.all([import("../browser_runtime/backends/webgl2/executable.js"), import("../browser_runtime/backends/webgl2/readback.js")]);
  const { reduce, readTelemetry } = Executable.prototype;
  const kinds = {
    read: { reduce, readTelemetry },
    unread: {
      reduce() {},
      /** @this {InstanceType<typeof Executable>} */
      async readTelemetry() {
        await signalled(this.device);
        return () => ({ loss: 0, finite: true, correct: 0 });
      },
    },
  };
  const contender = await loadContender(task, { thread: "inline" });
  training = await contender.prepare(task.workload)();
  steps = await calibrate(training, task.budgetMs / 3);
  /** @type {{read: number[], unread: number[]}} */
  const msPerStep = { read: [], unread: [] };
  for (let round = 0; round < 15; round++) {
    for (const kind of /** @type {const} */ (["read", "unread"])) {
      Object.assign(Executable.prototype, kinds[kind]);
      const started = now();
      await training.run(steps);
      await training.session.getWeights(); // waits for the GPU in both
      msPerStep[kind].push((now() - started) / steps);
    }
  }
  Object.assign(Executable.prototype, kinds.read);
  return msPerStep;
}

/** One piece of a long run; the first call starts it. */
async function soak() {
  if (!training) {
    task = await fetchTask();
    training = await (await loadContender(task)).prepare(task.workload)();
    await training.run(100);
  }
  const piece = task.pieceSteps ?? 1000;
  const started = now();
  const loss = await training.run(piece);
  const heapBytes = /** @type {any} */ (performance).memory?.usedJSHeapSize ?? null;
  return { msPerStep: (now() - started) / piece, loss, heapBytes, facts: training.facts() };
}

/** What this browser draws and computes with. */
async function device() {
  const gl = document.createElement("canvas").getContext("webgl2");
  const info = gl?.getExtension("WEBGL_debug_renderer_info");
  const adapter = await /** @type {any} */ (navigator).gpu?.requestAdapter();
  return {
    renderer: gl && info ? gl.getParameter(info.UNMASKED_RENDERER_WEBGL) : null,
    webgpu: adapter ? `${adapter.info.vendor} ${adapter.info.architecture} ${adapter.info.description}`.trim() || "unnamed" : null,
    threads: navigator.hardwareConcurrency,
    crossOriginIsolated,
    userAgent: navigator.userAgent,
  };
}

Object.assign(globalThis, { texelgradPage: { prepare, measure, again, count, telemetry, soak, device } });
