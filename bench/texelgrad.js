// Our engine as a contender of the bench.
import { compile, preload, release } from "../browser_runtime/texelgrad.js";
import { calibrate } from "./timing.js";
import { dataOf, specOf, weightsOf, workloads } from "./workloads.js";

/** @import { Workload } from "./workloads.js" */
/** @import { Contender, Training } from "./timing.js" */

/** All of the library: the Worker's modules too. @param {any} [options] of `compile` @returns {Promise<Contender>} */
export async function load(options = {}) {
  const { shaderUrl, thread } = options;
  await preload({ shaderUrl, thread });
  return {
    prepare: (workload) => {
      const data = dataOf(workload);
      const initialWeights = namedWeights(workload);
      return async () => training(await compile(specOf(workload, 1e9), { ...options, data, initialWeights }));
    },
    release,
  };
}

/** @param {Workload} workload @returns {Record<string, {shape: number[], data: Float32Array}>} */
function namedWeights(workload) {
  const entries = weightsOf(workload).flatMap(({ name, shape, kernel, bias }) => [
    [`${name}.kernel`, { shape, data: kernel }],
    [`${name}.bias`, { shape: [bias.length], data: bias }],
  ]);
  return Object.fromEntries(entries);
}

/** @param {Awaited<ReturnType<typeof compile>>} session @returns {Training} */
function training(session) {
  return {
    session,
    async run(steps) {
      let loss = NaN;
      await session.run({ steps, onTelemetry: (points) => void (loss = points[points.length - 1].loss ?? NaN) });
      return loss;
    },
    facts: () => {
      const { renderer, drawsPerStep, glCallsPerStep, peakTextureBytes, textures, timings } = session.record;
      return { renderer, drawsPerStep, glCallsPerStep, peakBytes: peakTextureBytes, textures, compileMs: timings.compileMs };
    },
    dispose: () => session.dispose(),
  };
}

/**
 * One workload in the page at hand, for work on the engine: milliseconds a step in steady state.
 * @param {string} name of a workload @param {{ms?: number, options?: any}} [how] `ms`: how long to measure
 */
export async function measure(name, { ms = 1000, options = {} } = {}) {
  const workload = workloads.find((w) => w.name === name);
  if (!workload) throw new Error(`no workload ${name}; there are ${workloads.map((w) => w.name).join(", ")}`);
  const { prepare } = await load(options);
  const start = prepare(workload);
  const started = performance.now();
  const trained = await start();
  try {
    await trained.run(1);
    const firstStepMs = performance.now() - started;
    const steps = await calibrate(trained, ms);
    const began = performance.now();
    const loss = await trained.run(steps);
    const msPerStep = (performance.now() - began) / steps;
    return { name, msPerStep, steps, loss, firstStepMs, ...trained.facts(), peakTextureBytes: trained.facts().peakBytes };
  } finally {
    await trained.dispose();
  }
}
