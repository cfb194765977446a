// From the job spec to the forward graph: one builder a layer type, and the loss. No GL.
import { EngineError } from "../errors.js";
import { Graph } from "./graph.js";

/** A parameter as the user sees it: how it is named, shaped ([in, out] or [height, width, in, out]), initialised.
 * @typedef {{tensor: string, layer: string, shape: number[], fanIn: number, fanOut: number, init: string, bias: boolean}} Parameter */

/**
 * @typedef {object} Model
 * @property {Graph} graph forward graph, ending in the op `loss`
 * @property {Parameter[]} parameters in the order of the layers
 * @property {string} output tensor name of the last layer's output
 * @property {number[]} outputShape
 * @property {boolean} flat whether the tensor at hand counts as flat, whatever its shape: flattening moves nothing
 */

const size = (/** @type {number[]} */ shape) => shape.reduce((a, b) => a * b, 1);

/** @type {Record<string, (model: Model, x: string, layer: any, field: string) => string>} */
const layers = {
  // An input is uploaded flat; any other tensor stays as it is, and the dense layer after it takes its weight rows pixel by pixel.
  flatten(model, x) {
    const tensor = model.graph.tensor(x);
    if (tensor.kind === "input") tensor.shape = [size(tensor.shape)];
    model.flat = true;
    return x;
  },

  dense(model, x, layer, field) {
    const { shape } = model.graph.tensor(x);
    if (shape.length !== 1 && !model.flat) {
      throw new EngineError("spec_invalid", `dense needs a flat input, this one is [${shape}]; put a flatten before it`, { field });
    }
    model.flat = false;
    const [fanIn, fanOut] = [size(shape), layer.units];
    const pixels = fanIn / /** @type {number} */ (shape.at(-1));
    const w = addParameter(model, layer, { shape: [fanIn, fanOut], blocks: [pixels, fanIn / pixels, fanOut], fanIn, fanOut });
    return activated(model, layer, "affine", { x, w }, [fanOut], {});
  },

  conv2d(model, x, layer, field) {
    const { shape } = model.graph.tensor(x);
    if (shape.length !== 3 || model.flat) {
      throw new EngineError("spec_invalid", `conv2d needs an input [height, width, channels], this one is [${model.flat ? size(shape) : shape}]`, { field });
    }
    const geometry = slide(shape, layer, layer.kernel, layer.dilation, field);
    const [area, channels] = [layer.kernel[0] * layer.kernel[1], shape[2]];
    const kernel = [...layer.kernel, channels, layer.filters];
    const w = addParameter(model, layer, { shape: kernel, blocks: kernel, fanIn: area * channels, fanOut: area * layer.filters });
    const output = [...geometry.size, layer.filters];
    return activated(model, layer, "conv2d", { x, w }, output, { ...geometry, input: shape, output });
  },

  max_pool2d(model, x, layer, field) {
    const { shape } = model.graph.tensor(x);
    if (shape.length !== 3 || model.flat) {
      throw new EngineError("spec_invalid", `max_pool2d needs an input [height, width, channels], this one is [${model.flat ? size(shape) : shape}]`, { field });
    }
    const geometry = slide(shape, layer, layer.size, [1, 1], field);
    if (Array.isArray(layer.padding) && layer.padding.some((/** @type {number[]} */ edges, /** @type {number} */ axis) => Math.max(...edges) >= layer.size[axis])) {
      const message = `a window may not lie in the padding alone: padding ${JSON.stringify(layer.padding)} must stay below the size [${layer.size}]`;
      throw new EngineError("spec_invalid", message, { field: `${field}.padding` });
    }
    const output = [...geometry.size, shape[2]];
    const y = model.graph.add({ name: `${layer.name}.y`, kind: "activation", shape: output, batched: true });
    model.graph.op("max_pool2d", { x }, { y }, { ...geometry, input: shape, output });
    return y;
  },
};

/**
 * @param {Model} model @param {any} layer
 * @param {{shape: number[], blocks: number[], fanIn: number, fanOut: number}} parts `blocks`: the same values as [...blocks, rows, columns]
 */
function addParameter({ graph, parameters }, layer, { shape, blocks, fanIn, fanOut }) {
  const tensor = graph.add({ name: layer.name, kind: "parameter", shape: blocks, batched: false, bias: true });
  parameters.push({ tensor, layer: layer.name, shape, fanIn, fanOut, init: layer.init, bias: true });
  return tensor;
}

/** An op and the layer's activation behind it. @param {Model} model @param {any} layer @param {string} op
 * @param {Record<string, string>} inputs @param {number[]} shape @param {Record<string, any>} attrs */
function activated({ graph }, layer, op, inputs, shape, attrs) {
  const linear = layer.activation === "linear";
  const z = graph.add({ name: `${layer.name}.${linear ? "y" : "z"}`, kind: "activation", shape, batched: true });
  graph.op(op, inputs, { y: z }, attrs);
  if (linear) return z;
  const y = graph.add({ name: `${layer.name}.y`, kind: "activation", shape, batched: true });
  graph.op("activation", { x: z }, { y }, { fn: layer.activation });
  return y;
}

/**
 * Where a sliding window stands: size of its output, and the padding before the first row and column.
 * `same` pads as TensorFlow does: output = ceil(input / stride), the odd pixel behind.
 * @param {number[]} shape [height, width, channels] @param {any} layer @param {number[]} taps @param {number[]} dilation @param {string} field
 */
function slide(shape, layer, taps, dilation, field) {
  const { stride, padding } = layer;
  const axis = (/** @type {0|1} */ i) => {
    const extent = (taps[i] - 1) * dilation[i] + 1;
    const total = padding === "same" ? Math.max(0, (Math.ceil(shape[i] / stride[i]) - 1) * stride[i] + extent - shape[i]) : 0;
    const [before, after] = Array.isArray(padding) ? padding[i] : [Math.floor(total / 2), Math.ceil(total / 2)];
    const size = Math.floor((shape[i] + before + after - extent) / stride[i]) + 1;
    if (size < 1) {
      throw new EngineError("spec_invalid", `a window of ${extent} does not fit ${shape[i]} + ${before + after} ${i ? "columns" : "rows"}`, { field });
    }
    return { before, size };
  };
  const [rows, columns] = [axis(0), axis(1)];
  return { taps, stride, dilation, padding: [rows.before, columns.before], size: [rows.size, columns.size] };
}

/**
 * Builds the forward graph of a validated spec whose defaults are filled in, up to the last layer's output.
 * @param {any} spec the job spec
 * @returns {Model}
 */
export function buildModel(spec) {
  const graph = new Graph();
  /** @type {Model} */
  const model = { graph, parameters: [], output: "", outputShape: [], flat: false };
  let y = graph.add({ name: "x", kind: "input", shape: [...spec.model.input], batched: true });
  spec.model.layers.forEach((/** @type {any} */ layer, /** @type {number} */ i) => {
    const build = layers[layer.type];
    if (!build) {
      throw new EngineError("spec_invalid", `${layer.type} is unknown; legal: ${Object.keys(layers).join(", ")}`, {
        field: `model.layers.${i}.type`,
      });
    }
    y = build(model, y, layer, `model.layers.${i}`);
  });
  model.output = y;
  model.outputShape = graph.tensor(y).shape;
  return model;
}

/**
 * Appends the targets and the loss of each row.
 * @param {Model} model @param {string} fn the spec's loss
 * @param {"index"|"values"} labels whether targets are class numbers or a value for each output
 */
export function appendLoss({ graph, output, outputShape }, fn, labels) {
  graph.add({ name: "target", kind: "target", shape: [labels === "index" ? 1 : size(outputShape)], batched: true });
  graph.add({ name: "loss", kind: "rows", shape: [1], batched: true });
  graph.op("loss", { z: output, target: "target" }, { loss: "loss" }, { fn, labels });
}

/**
 * Appends whether each row is predicted right: the largest logit is the class, or the logit's sign for bce.
 * @param {Model} model @param {string} fn the spec's loss @param {"index"|"values"} labels
 */
export function appendAccuracy({ graph, output }, fn, labels) {
  graph.add({ name: "correct", kind: "rows", shape: [1], batched: true });
  graph.op("accuracy", { z: output, target: "target" }, { correct: "correct" }, { fn, labels });
}
