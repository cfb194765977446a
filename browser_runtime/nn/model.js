// From the job spec to the forward graph: inputs, layers in their order (each reads the one before it, or those that it names), and the loss. No GL.
import { EngineError } from "../errors.js";
import { activations } from "./activations.js";
import { Graph, size } from "./graph.js";
import { arrayOf, checkNames, fieldOf, RESERVED, ROW_WEIGHT, shapesOf } from "./inputs.js";
import { lossOptions, lossType } from "./losses.js";
import { layerTypes } from "./layers/index.js";

/**
 * What a layer reads or makes: a tensor, and the shape that the user sees. They differ where an image was flattened: that moves nothing,
 * and the tensor is still held pixel by pixel.
 * @typedef {{tensor: string, shape: number[]}} Value
 */

/**
 * A parameter as the user sees it. Its matrix is exported as `<layer>.<names.kernel>` with `shape`, its bias row, where it has one, as
 * `<layer>.<names.bias>` with [columns].
 * @typedef {{tensor: string, layer: string, shape: number[], fanIn: number, fanOut: number, init: string|number, biasInit: string|number, bias: boolean,
 *   trainable: boolean, names: {kernel: string, bias: string}}} Parameter
 */

/**
 * What training keeps beside the parameters and does not train, such as running statistics: a row of numbers, exported as
 * `<layer>.<name>` with [columns], that begins as `initial`; `moves`: every step writes it.
 * @typedef {{tensor: string, layer: string, name: string, shape: number[], initial: number, moves: boolean}} Buffer
 */

/**
 * Which of the two ways of a convolution is taken: shifted products, or one product with what the windows hold ("im2col"). With what both would
 * cost: multiply-adds, and loads and stores of 4 numbers, for a sample of a step; bytes of the weights and of what the windows hold, null where no texture
 * holds that.
 * @typedef {{multiplyAdds: number, loads: number, stores: number, bytes: number|null}} Cost
 * @typedef {{algorithm: "direct"|"im2col", direct: Cost, im2col: Cost|null}} Choice `im2col`: null where groups or transposition rule it out
 */

/** @typedef {(layer: string, geometry: any, trainable: boolean) => Choice} Choose for a layer of a plan, by the attributes of its op conv2d */

/** A forward graph under construction; layers/ add to it. */
export class Model {
  /**
   * @param {boolean} training whether this is the graph of a step: some layers then do something else
   * @param {number} seed of the run
   * @param {Choose} [choose] an algorithm for each convolution; shifted products where left out
   */
  constructor(training, seed, choose) {
    this.training = training;
    this.seed = seed;
    this.choose = choose;
    /** By layer. @type {({layer: string} & Choice)[]} */
    this.convolutions = [];
    /** Dropout layers so far. */
    this.dropouts = 0;
    this.graph = new Graph();
    /** In the order of the layers. @type {Parameter[]} */
    this.parameters = [];
    /** In the order of the layers. @type {Buffer[]} */
    this.buffers = [];
    /** Of each input tensor whose numbers are looked up: how many there are to look up at least. @type {Map<string, number>} */
    this.lookups = new Map();
    /** Rows that a batch must have at least. */
    this.leastRows = 1;
    /** Tensor of the last layer's output. */
    this.output = "";
    /** @type {number[]} */
    this.outputShape = [];
  }

  /**
   * Adds an op with one output y, named after the layer.
   * @param {string} type @param {Record<string, string>} inputs tensors @param {string} name of the output @param {number[]} shape of a sample
   * @param {Record<string, any>} [attrs]
   * @returns {Value}
   */
  apply(type, inputs, name, shape, attrs = {}) {
    const y = this.graph.add({ name, kind: "activation", shape, batched: true });
    this.graph.op(type, inputs, { y }, attrs);
    return { tensor: y, shape };
  }

  /**
   * An op and the layer's activation behind it.
   * @param {any} layer @param {string} type @param {Record<string, string>} inputs @param {number[]} shape @param {Record<string, any>} [attrs]
   * @returns {Value}
   */
  activated(layer, type, inputs, shape, attrs = {}) {
    if (layer.activation === "linear") return this.apply(type, inputs, `${layer.name}.y`, shape, attrs);
    const z = this.apply(type, inputs, `${layer.name}.z`, shape, attrs);
    return this.activation(layer.activation, z, `${layer.name}.y`, shape);
  }

  /**
   * @param {string} fn one of nn/activations.js @param {Value} x @param {string} name of the output @param {number[]} shape of its tensor
   * @returns {Value}
   */
  activation(fn, x, name, shape) {
    return this.apply(activations[fn].op ?? "activation", { x: x.tensor }, name, shape, { fn });
  }

  /**
   * A value as it is held where its last axis are the channels of a pixel: only a flattened image, or one whose channels were taken apart, is moved.
   * @param {Value} value @param {string} name of the tensor that it may take
   * @returns {Value}
   */
  natural({ tensor, shape }, name) {
    return this.graph.tensor(tensor).shape.at(-1) === shape.at(-1) ? { tensor, shape } : this.apply("reshape", { x: tensor }, name, shape);
  }

  /**
   * @param {any} layer
   * @param {{shape: number[], blocks: number[], fanIn: number, fanOut: number, bias: boolean, init?: string, names?: Parameter["names"],
   *   decay?: boolean}} parts `blocks`: the same values as [...blocks, rows, columns]; `decay`: whether penalties and weight decay count, for the
   *   matrix alone
   * @returns {string} its tensor
   */
  parameter(layer, { shape, blocks, fanIn, fanOut, bias, init = layer.init, names = { kernel: "kernel", bias: "bias" }, decay = true }) {
    const { trainable = true, lr_multiplier: multiplier = 1 } = layer;
    const training = trainable ? { multiplier, decay } : null;
    const tensor = this.graph.add({ name: layer.name, kind: "parameter", shape: blocks, batched: false, bias, training });
    this.parameters.push({ tensor, layer: layer.name, shape, fanIn, fanOut, init, biasInit: layer.bias_init ?? "zeros", bias, trainable, names });
    return tensor;
  }

  /** @param {any} layer a convolution @param {any} geometry attributes of its op @returns {"direct"|"im2col"} */
  algorithm(layer, geometry) {
    if (!this.choose) return "direct";
    const choice = this.choose(layer.name, geometry, layer.trainable ?? true);
    this.convolutions.push({ layer: layer.name, ...choice });
    return choice.algorithm;
  }

  /** @param {any} layer @param {string} name @param {{columns: number, initial: number, moves: boolean}} parts @returns {string} its tensor */
  buffer(layer, name, { columns, initial, moves }) {
    const tensor = this.graph.add({ name: `${layer.name}.${name}`, kind: "buffer", shape: [columns], batched: false });
    this.buffers.push({ tensor, layer: layer.name, name, shape: [columns], initial, moves });
    return tensor;
  }
}

const refuse = (/** @type {string} */ field, /** @type {string} */ message) => new EngineError("spec_invalid", message, { field });

/**
 * Builds the forward graph of a validated spec whose defaults are filled in, up to the last layer's output.
 * @param {any} spec the job spec
 * @param {{training: boolean, choose?: Choose}} phase whether for a training step, or for evaluation and prediction; see Model
 * @returns {Model}
 */
export function buildModel(spec, { training, choose }) {
  const model = new Model(training, spec.train.seed, choose);
  const { layers } = spec.model;
  const inputs = shapesOf(spec.model.input);
  const wiring = wire(spec.model);
  /** @type {Map<string, Value>} */
  const values = new Map();
  for (const [name, shape] of Object.entries(inputs)) {
    const held = heldInput(shape, layers.filter((/** @type {any} */ _, /** @type {number} */ i) => wiring[i].includes(name)));
    values.set(name, { tensor: model.graph.add({ name: arrayOf(name), kind: "input", shape: held, batched: true }), shape: [...shape] });
  }
  layers.forEach((/** @type {any} */ layer, /** @type {number} */ i) => {
    const inputs = wiring[i].map((name) => /** @type {Value} */ (values.get(name)));
    values.set(layer.name, layerTypes[layer.type].build(model, layer, inputs, `model.layers.${i}`));
  });
  const last = /** @type {Value} */ (values.get(layers.at(-1).name));
  model.output = last.tensor;
  model.outputShape = last.shape;
  if (!model.parameters.some(({ trainable }) => trainable)) throw refuse("model.layers", "no layer has weights to train; legal: one that is trainable");
  return model;
}

/**
 * The shape in which an input is uploaded: what is only ever read in another shape is uploaded so.
 * @param {number[]} input @param {any[]} readers layers @returns {number[]}
 */
function heldInput(input, readers) {
  const wanted = readers.map(({ type, shape }) => (type === "flatten" ? [size(input)] : type === "reshape" && size(shape) === size(input) ? shape : input));
  return [...(wanted.every((shape) => shape.join() === wanted[0].join()) ? wanted[0] : input)];
}

/**
 * The names of what each layer reads: the layer before it unless it says otherwise, at first the only input.
 * @param {{input: import("./inputs.js").ModelInput, layers: any[]}} model @returns {string[][]}
 * @throws {EngineError} spec_invalid; texelgrad/network.py refuses the same
 */
function wire({ input, layers }) {
  checkNames(input);
  const inputs = Object.keys(shapesOf(input));
  const known = new Set(inputs);
  const wiring = layers.map((layer, i) => {
    const field = `model.layers.${i}`;
    if (RESERVED.includes(layer.name)) throw refuse(`${field}.name`, `${layer.name} is the name of something else; reserved: ${RESERVED.join(", ")}`);
    if (inputs.includes(layer.name)) throw refuse(`${field}.name`, `${layer.name} is the name of an input`);
    if (i === 0 && !layer.inputs && inputs.length > 1) throw refuse(`${field}.inputs`, `must say which of the inputs it reads; legal: ${inputs.join(", ")}`);
    const names = layer.inputs ?? [i === 0 ? inputs[0] : layers[i - 1].name];
    names.forEach((/** @type {string} */ name, /** @type {number} */ k) => {
      if (!known.has(name)) throw refuse(`${field}.inputs.${k}`, `${name} is no earlier layer; legal: ${[...known].join(", ")}`);
    });
    const { least, most } = layerTypes[layer.type].inputs;
    if (names.length < least || names.length > most) {
      throw refuse(`${field}.inputs`, `${layer.type} reads ${least === most ? least : `at least ${least}`}, not ${names.length}`);
    }
    known.add(layer.name);
    return names;
  });
  const read = new Set(wiring.flat());
  layers.slice(0, -1).forEach(({ name }, i) => {
    if (!read.has(name)) throw refuse(`model.layers.${i}`, `no layer reads ${name}`);
  });
  const unread = inputs.find((name) => !read.has(name));
  if (unread) throw refuse(fieldOf(unread), `no layer reads ${unread}`);
  return wiring;
}

/**
 * Appends the targets and the loss of each row. Targets lie as the outputs do.
 * @param {Model} model @param {any} spec
 * @param {{labels: "index"|"values", weighted?: boolean}} data whether targets are class numbers or a value for each output; whether rows have weights
 */
export function appendLoss({ graph, output }, spec, { labels, weighted = false }) {
  const { shape } = graph.tensor(output);
  const { attrs, weights } = lossOptions(spec, size(shape));
  graph.add({ name: "target", kind: "target", shape: labels === "index" ? [1] : shape, batched: true });
  graph.add({ name: "loss", kind: "rows", shape: [1], batched: true });
  /** @type {Record<string, string>} */
  const constants = weights ? { weights: graph.add({ name: "loss.weights", kind: "constant", shape, batched: false, values: weights }) } : {};
  /** @type {Record<string, string>} */
  const ofRows = weighted ? { rows: graph.add({ name: ROW_WEIGHT, kind: "target", shape: [1], batched: true }) } : {};
  graph.op("loss", { z: output, target: "target", ...constants, ...ofRows }, { loss: "loss" }, { ...attrs, labels });
}

/**
 * Appends whether each row is predicted right: the largest logit is the class, or the logit's sign for bce and hinge.
 * @param {Model} model @param {any} spec @param {"index"|"values"} labels
 */
export function appendAccuracy({ graph, output }, spec, labels) {
  graph.add({ name: "correct", kind: "rows", shape: [1], batched: true });
  graph.op("accuracy", { z: output, target: "target" }, { correct: "correct" }, { fn: lossType(spec), labels });
}
