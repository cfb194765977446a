// pipeline_probe.js: how many steps the pipeline submits at once, for test_pipeline.py.
import { Pipeline } from "../../browser_runtime/train/pipeline.js";

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
