// From the job spec to the forward graph: one builder a layer type, and the loss. No GL.
import { EngineError } from "../errors.js";
import { Graph } from "./graph.js";

/** A parameter as the user sees it: how it is named, shaped, initialised.
 * @typedef {{tensor: string, layer: string, shape: number[], fanIn: number, fanOut: number, init: string, bias: boolean}} Parameter */

/**
 * @typedef {object} Model
 * @property {Graph} graph forward graph, ending in the op `loss`
 * @property {Parameter[]} parameters in the order of the layers
 * @property {string} output tensor name of the last layer's output
 * @property {number[]} outputShape
 */

const size = (/** @type {number[]} */ shape) => shape.reduce((a, b) => a * b, 1);

/** @type {Record<string, (model: Model, x: string, layer: any, field: string) => string>} */
const layers = {
  // Row-major samples are flat already; a multi-channel activation will need a repacking op here.
  flatten({ graph }, x) {
    const tensor = graph.tensor(x);
    tensor.shape = [size(tensor.shape)];
    return x;
  },

  dense({ graph, parameters }, x, layer, field) {
    const { shape } = graph.tensor(x);
    if (shape.length !== 1) {
      throw new EngineError("spec_invalid", `${field}: dense needs a flat input, this one is [${shape}]; put a flatten before it`, { field });
    }
    const [fanIn, fanOut] = [shape[0], layer.units];
    const w = graph.add({ name: layer.name, kind: "parameter", shape: [fanIn, fanOut], batched: false, bias: true });
    parameters.push({ tensor: w, layer: layer.name, shape: [fanIn, fanOut], fanIn, fanOut, init: layer.init, bias: true });
    const linear = layer.activation === "linear";
    const z = graph.add({ name: `${layer.name}.${linear ? "y" : "z"}`, kind: "activation", shape: [fanOut], batched: true });
    graph.op("affine", { x, w }, { y: z });
    if (linear) return z;
    const y = graph.add({ name: `${layer.name}.y`, kind: "activation", shape: [fanOut], batched: true });
    graph.op("activation", { x: z }, { y }, { fn: layer.activation });
    return y;
  },
};

/**
 * Builds the forward graph of a validated spec whose defaults are filled in, up to the last layer's output.
 * @param {any} spec the job spec
 * @returns {Model}
 */
export function buildModel(spec) {
  const graph = new Graph();
  /** @type {Model} */
  const model = { graph, parameters: [], output: "", outputShape: [] };
  let y = graph.add({ name: "x", kind: "input", shape: [...spec.model.input], batched: true });
  spec.model.layers.forEach((/** @type {any} */ layer, /** @type {number} */ i) => {
    const build = layers[layer.type];
    if (!build) {
      throw new EngineError("spec_invalid", `model.layers.${i}.type: ${layer.type} is unknown; legal: ${Object.keys(layers).join(", ")}`, {
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
