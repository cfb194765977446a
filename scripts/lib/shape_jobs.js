// Jobs that reach the kernels of activations, pooling, shapes, merging and dropout, for expand_shaders.js.
import { activations } from "../../browser_runtime/nn/activations.js";
import { validateSpec } from "../../browser_runtime/nn/spec.js";

/** @typedef {{spec: any, labels: string, batch: number}} Job */

/**
 * @param {any} optimizer @param {string[]} known activations that other jobs go through
 * @yields {Job}
 */
export function* shapeJobs(optimizer, known) {
  const job = (/** @type {number[]} */ input, /** @type {any[]} */ layers) => ({
    spec: validateSpec({ model: { input, layers }, loss: "mse", optimizer, train: { steps: 1, batch_size: 16 } }),
    labels: "values",
    batch: 16,
  });
  for (const fn of Object.keys(activations).filter((name) => !known.includes(name))) {
    // Where it rides along, and where it is a layer of its own.
    const conv = { type: "conv2d", filters: 5, kernel: 3, padding: "same", activation: fn };
    const own = { type: "activation", function: fn };
    for (const units of [3, 10]) {
      yield job([8, 7, 3], [
        conv, own, conv, { type: "add", inputs: ["activation_1", "conv2d_2"], activation: fn }, { type: "max_pool2d", size: 2 }, own, { type: "flatten" },
        { type: "dense", units: 7, activation: fn }, { type: "dense", units: 5 }, own, { type: "dense", units, activation: fn },
      ]);
    }
  }
}
