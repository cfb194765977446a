// Normalization: by statistics of each sample (layer_norm, group_norm), or of each channel over the batch (batch_norm).
import { size } from "../graph.js";
import { ONE, refuse } from "./checks.js";

/** @import { Model, Value } from "../model.js" */

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  // Over the last axis: the values of a row, or the channels of a pixel.
  layer_norm: {
    inputs: ONE,
    build: (model, layer, [x]) => sampleNorm(model, layer, x, { groups: 1, pixelwise: true }),
  },

  // Over all axes but that some channels go together: each group by itself.
  group_norm: {
    inputs: ONE,
    build(model, layer, [x], field) {
      const channels = /** @type {number} */ (x.shape.at(-1));
      if (channels % layer.groups !== 0) throw refuse(`${field}.groups`, `${layer.groups} groups can't share ${channels} channels evenly`);
      return sampleNorm(model, layer, x, { groups: layer.groups, pixelwise: false });
    },
  },

  // Training normalizes by the batch and moves the running statistics towards it; evaluation, and a frozen layer, normalize by those.
  batch_norm: {
    inputs: ONE,
    build(model, layer, [x]) {
      const { tensor, shape, pixels, channels } = operandOf(model, layer, x);
      const w = scaleAndShift(model, layer, channels);
      const live = model.training && layer.trainable !== false;
      const running = {
        running_mean: model.buffer(layer, "running_mean", { columns: channels, initial: 0, moves: live }),
        running_var: model.buffer(layer, "running_var", { columns: channels, initial: 1, moves: live }),
      };
      const attrs = { pixels, channels, eps: layer.eps };
      /** @type {Record<string, string>} */
      let statistics = { mean: running.running_mean, variance: running.running_var };
      if (live) {
        // The variance of one value is none.
        if (pixels === 1) model.leastRows = Math.max(model.leastRows, 2);
        statistics = Object.fromEntries(
          ["mean", "variance"].map((name) => [name, model.graph.add({ name: `${layer.name}.${name}`, kind: "statistics", shape: [channels], batched: false })]),
        );
        model.graph.op("batch_norm_statistics", { x: tensor, ...running }, { ...statistics, ...running }, { ...attrs, momentum: layer.momentum });
      }
      return { ...model.activated(layer, "batch_norm", { x: tensor, w, ...statistics }, shape, { ...attrs, live }), shape: x.shape };
    },
  },
};

/**
 * @param {Model} model @param {any} layer @param {Value} x
 * @param {{groups: number, pixelwise: boolean}} sets `pixelwise`: each pixel by itself
 * @returns {Value}
 */
function sampleNorm(model, layer, x, { groups, pixelwise }) {
  const { tensor, shape, pixels, channels } = operandOf(model, layer, x);
  const w = scaleAndShift(model, layer, channels);
  const attrs = { pixels, channels, groups, pixelwise, eps: layer.eps };
  // Mean and inverse deviation of each set.
  const s = model.graph.add({ name: `${layer.name}.statistics`, kind: "activation", shape: [pixelwise ? pixels : groups, 2], batched: true });
  model.graph.op("sample_norm_statistics", { x: tensor }, { s }, attrs);
  return { ...model.activated(layer, "sample_norm", { x: tensor, s, w }, shape, attrs), shape: x.shape };
}

/** What is normalized, with all that is a channel as one: a flattened image is moved. @param {Model} model @param {any} layer @param {Value} value */
function operandOf(model, layer, value) {
  const { tensor } = model.natural(value, `${layer.name}.x`);
  const { shape } = model.graph.tensor(tensor);
  return { tensor, shape, pixels: size(shape.slice(0, -1)), channels: /** @type {number} */ (shape.at(-1)) };
}

/** gamma and beta: one parameter, beta its bias. @param {Model} model @param {any} layer @param {number} channels */
const scaleAndShift = (model, layer, channels) =>
  model.parameter(layer, {
    shape: [channels], blocks: [1, channels], fanIn: 1, fanOut: channels, bias: true, init: "ones", names: { kernel: "gamma", bias: "beta" }, decay: false,
  });
