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
  for (const activation of ["linear", "tanh", "gelu"]) {
    const conv = { type: "conv2d", filters: 5, kernel: 2, activation };
    const ends = [{ type: "flatten" }, { type: "dense", units: 3 }];
    yield job([7, 8, 3], [
      conv, { type: "avg_pool2d", size: 2, stride: 1 }, conv, { type: "upsample2d", size: 2 }, conv, { type: "zero_pad2d", padding: 1 }, conv,
      { type: "crop2d", cropping: [[1, 0], [0, 1]] }, conv, { type: "reshape", shape: [6, 40, 1] }, conv, { type: "global_avg_pool2d" }, { type: "dense", units: 3 },
    ]);
    yield job([4, 6, 3], [conv, { type: "dropout", rate: 0.5 }, { ...conv, filters: 6 }, { type: "dropout", rate: 0.25 }, ...ends]);
    yield job([4, 6, 3], [{ ...conv, name: "a" }, { ...conv, name: "b", inputs: ["input"], filters: 4 }, { type: "concat", inputs: ["a", "b", "a"] }, conv, ...ends]);
    yield job([4, 6, 3], [{ ...conv, name: "a" }, { ...conv, name: "b", inputs: ["input"] }, { type: "multiply", inputs: ["a", "b"], activation }, { type: "multiply", inputs: ["a", "multiply_1"] }, { type: "global_max_pool2d" }, ...ends.slice(1)]);
  }
}
