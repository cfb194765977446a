// Convolutions: all become conv2d ops. One of one dimension has one row; a transposed one makes what its windows slide over.
import { size } from "../graph.js";
import { imageShape, ONE, oneRow, refuse, sequenceShape, slide } from "./checks.js";

/** @import { Model, Value } from "../model.js" */

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  conv2d: {
    inputs: ONE,
    build(model, layer, [x], field) {
      const input = imageShape(x, layer, field);
      const geometry = slide(input, layer, layer.kernel, layer.dilation, field);
      requireGroups(input[2], layer, field);
      return convolve(model, layer, x, layer.kernel, { ...geometry, input, groups: layer.groups }, [...geometry.size, layer.filters]);
    },
  },

  conv1d: {
    inputs: ONE,
    build(model, layer, [x], field) {
      const [length, channels] = sequenceShape(x, layer, field);
      const { dilation, kernel, groups, filters } = layer;
      const input = [1, length, channels];
      const geometry = slide(input, oneRow(layer), [1, kernel], [1, dilation], field);
      requireGroups(channels, layer, field);
      return convolve(model, layer, x, [kernel], { ...geometry, input, groups }, [geometry.size[1], filters]);
    },
  },

  conv2d_transpose: {
    inputs: ONE,
    build(model, layer, [x], field) {
      const input = imageShape(x, layer, field);
      const { kernel, stride, dilation } = layer;
      const axes = [0, 1].map((i) => spread(input[i], layer, i, field));
      const geometry = { taps: kernel, stride, dilation, padding: axes.map(({ before }) => before), size: axes.map(({ size }) => size), transposed: true };
      return convolve(model, layer, x, kernel, { ...geometry, input, groups: 1 }, [...geometry.size, layer.filters]);
    },
  },
};

/**
 * @param {Model} model @param {any} layer @param {Value} x @param {number[]} taps @param {any} attrs of the op but for its output's shape
 * @param {number[]} shape of the output
 */
function convolve(model, layer, x, taps, attrs, shape) {
  const channels = attrs.input[2] / attrs.groups;
  const kernel = [...taps, channels, layer.filters];
  const area = size(taps);
  const geometry = { ...attrs, output: [...attrs.size, layer.filters], kernel };
  const patches = model.algorithm(layer, geometry) === "im2col" ? patchesOf(model, layer, x, geometry) : null;
  // Where a window is one pixel, its weights are one block.
  const blocks = patches ? [area * channels, layer.filters] : kernel;
  const w = model.parameter(layer, { shape: kernel, blocks, fanIn: area * channels, fanOut: area * layer.filters, bias: layer.use_bias });
  return model.activated(layer, "conv2d", { x: x.tensor, ...patches, w }, shape, geometry);
}

/**
 * What the windows hold, which the products with the weights then read instead of x. It has no gradient of its own.
 * @param {Model} model @param {any} layer @param {Value} x @param {any} geometry @returns {{patches: string}}
 */
function patchesOf({ graph }, layer, x, geometry) {
  const [height, width] = geometry.size;
  const shape = [height, width, size(geometry.kernel.slice(0, -1))];
  const patches = graph.add({ name: `${layer.name}.patches`, kind: "activation", shape, batched: true });
  graph.op("im2col", { x: x.tensor }, { patches }, geometry);
  return { patches };
}

/**
 * One axis of a transposed convolution of `length` windows: size of what they slide over, and how much is left out before it.
 * `valid` and `same` are TensorFlow's: a convolution with the same padding has `length` places on it. Explicit padding is PyTorch's.
 * @param {number} length @param {any} layer @param {number} axis @param {string} field
 */
function spread(length, { kernel, stride, dilation, padding }, axis, field) {
  const extent = (kernel[axis] - 1) * dilation[axis] + 1;
  const over = Math.max(extent - stride[axis], 0);
  if (padding === "same") return { before: Math.floor(over / 2), size: length * stride[axis] };
  if (padding === "valid") return { before: 0, size: length * stride[axis] + over };
  const [before, after] = padding[axis];
  const touched = (length - 1) * stride[axis] + extent;
  if (touched - before - after < 1) {
    throw refuse(`${field}.padding`, `${before} + ${after} leaves nothing of the ${touched} ${axis ? "columns" : "rows"} that the windows touch`);
  }
  return { before, size: touched - before - after };
}

/** @param {number} channels @param {any} layer @param {string} field */
function requireGroups(channels, { groups, filters }, field) {
  if (channels % groups || filters % groups) {
    throw refuse(`${field}.groups`, `${groups} groups must share ${channels} channels and ${filters} filters alike`);
  }
}
