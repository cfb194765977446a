// Predicting: what is compiled for a spec that only predicts: neither batches nor a split, and a row of zeros where there are no data.
import { size } from "../nn/graph.js";
import { lossType } from "../nn/losses.js";
import { mapValues, shapesOf } from "../nn/inputs.js";
import { buildModel } from "../nn/model.js";

/**
 * The spec without what only training reads, which the rows to predict for need not fit; inputs go through what the weights say.
 * @param {any} spec validated @returns {any}
 */
export function withoutTraining(spec) {
  const train = { ...spec.train, batch_size: 1, accumulate_steps: null, evaluate_every: null, early_stopping: null };
  return { ...spec, train, data: { ...spec.data, normalize: "inherit", validation: { fraction: 0, stratify: false, rows: null } } };
}

/** Data to compile for. @param {any} spec validated @returns {import("./data.js").NamedData} */
export function placeholder(spec) {
  const outputs = size(buildModel(spec, { training: false }).outputShape);
  const zeros = (/** @type {number[]} */ shape) => ({ shape, data: new Float32Array(size(shape)) });
  return { x: mapValues(shapesOf(spec.model.input), (shape) => zeros([1, ...shape])), y: zeros(lossType(spec) === "softmax_cross_entropy" ? [1] : [1, outputs]) };
}
