// Our engine's side of the bench: milliseconds a step in steady state.
import { compile, probe } from "../browser_runtime/texelgrad.js";
import { dataOf, specOf, workloads } from "./workloads.js";

/**
 * @param {string} name of a workload
 * @param {{ms?: number, options?: any}} [how] `ms`: how long to measure
 */
export async function measure(name, { ms = 1000, options = {} } = {}) {
  const workload = workloads.find((w) => w.name === name);
  if (!workload) throw new Error(`no workload ${name}`);
  const started = performance.now();
  const session = await compile(specOf(workload, 1e9), { ...options, data: dataOf(workload) });
  try {
    await session.run({ steps: 1 });
    const firstStepMs = performance.now() - started;
    let loss = NaN;
    const onTelemetry = (/** @type {any[]} */ points) => (loss = points[points.length - 1].loss);
    // Find how many steps fill the time, which also warms up.
    let steps = 4;
    let took = 0;
    for (;;) {
      const start = performance.now();
      await session.run({ steps, onTelemetry });
      took = performance.now() - start;
      if (took > ms / 3) break;
      steps = Math.ceil(steps * Math.min(8, Math.max(1.5, ms / 2 / took)));
    }
    steps = Math.max(1, Math.round((steps * ms) / took));
    const start = performance.now();
    await session.run({ steps, onTelemetry });
    const msPerStep = (performance.now() - start) / steps;
    const { drawsPerStep, glCallsPerStep, peakTextureBytes, timings, renderer } = session.record;
    return { name, msPerStep, steps, loss, firstStepMs, compileMs: timings.compileMs, drawsPerStep, glCallsPerStep, peakTextureBytes, renderer };
  } finally {
    await session.dispose();
  }
}

export { probe };
