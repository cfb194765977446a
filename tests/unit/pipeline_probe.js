// pipeline_probe.js: how many steps the pipeline submits at once, and what training tells it, for test_pipeline.py.
import { EngineError } from "../../browser_runtime/errors.js";
import { Pipeline } from "../../browser_runtime/train/pipeline.js";
import { train } from "../../browser_runtime/train/training.js";

/**
 * @param {[number, number][]} seen steps of each chunk and the milliseconds that they took
 * @returns {number[]} steps of the chunk that follows each
 */
export function chunks(seen) {
  const parts = /** @type {any} */ ({ executable: null, spec: { metrics: [] }, batches: null, validation: new Int32Array(0) });
  const pipeline = new Pipeline(parts);
  return seen.map(([steps, ms]) => {
    pipeline.adapt(steps, ms);
    return pipeline.chunkSteps;
  });
}

/**
 * Trains a session whose pipeline and device are made up: chunks of one step, every second of which ends a validation that the run waits for.
 * @param {{ms: number, chunks: number, broken?: boolean, fails?: boolean}} how `ms`: that
 *   each chunk takes; `broken`: losses are not finite; `fails`: the device reports an error
 * @returns {Promise<{adapted: [number, number][], error: string|null}>} steps and milliseconds that the pipeline was told, and the error's code
 */
export async function trained({ ms, chunks: count, broken = false, fails = false }) {
  /** @type {[number, number][]} */
  const adapted = [];
  let submitted = 0;
  let read = Promise.resolve();
  const pipeline = {
    waits: true, justValidated: false, submitted: 0, step: 0,
    wants: () => submitted < count,
    submit() {
      submitted += 1;
      this.justValidated = submitted % 2 === 0;
      read = read.then(() => new Promise((resolve) => setTimeout(resolve, ms)));
      return read.then(() => ({ flights: [{ count: 1 }] }));
    },
    adapt: (/** @type {number} */ steps, /** @type {number} */ took) => void adapted.push([steps, took]),
    points: () => ({ points: [], broken: broken ? { step: 1, loss: NaN } : undefined }),
  };
  let diverged = false;
  const progress = {
    stopped: false,
    receive: (/** @type {any} */ chunk) => void (diverged ||= chunk.broken !== undefined),
    show() {
      if (diverged) throw new EngineError("non_finite_loss", "not finite");
    },
  };
  const device = {
    asked: 0,
    check() {
      if (fails && this.asked++ > 0) throw new EngineError("gl_error", "a draw failed");
    },
  };
  const session = /** @type {any} */ ({ device, executable: { compileRest() {} }, pipeline, progress, timings: { firstStepMs: 0 }, disposed: false, goesOn() {} });
  const error = await train(session, count, {}).then(() => null, ({ code }) => code);
  return { adapted, error };
}
