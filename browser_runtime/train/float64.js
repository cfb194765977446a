// float64: executes a plan's primitive ops with the reference, in float64, on plain arrays.
import { size } from "../nn/graph.js";
import { dropoutMask } from "../nn/random.js";
import { ops as reference } from "../reference/index.js";
import { tensor, zip } from "../reference/tensor.js";

/** @import { Op } from "../nn/graph.js" */
/** @import { Tensor } from "../reference/tensor.js" */

/** A parameter, its gradient or state: the engine keeps the bias, where there is one, with the kernel. @typedef {{kernel: Tensor, bias: Tensor|null}} Parameter */
/** @typedef {Map<string, any>} Values tensor name -> Tensor or Parameter */

/** @param {number[]} shape @param {ArrayLike<number>} kernel @param {ArrayLike<number>|null} bias @returns {Parameter} */
export const parameter = (shape, kernel, bias) => ({ kernel: tensor(shape, kernel), bias: bias && tensor(shape.slice(-1), bias) });

/** Flattening moves nothing: a dense layer reads an image as a row. @param {Tensor} x @returns {Tensor} */
const rows = ({ shape, data }) => ({ shape: [shape[0], data.length / shape[0]], data });

/** gamma and beta are a parameter with its bias. @param {{w: Parameter}} inputs */
const scaled = ({ w, ...others }) => ({ ...others, gamma: w.kernel, beta: w.bias });

/** @param {Record<string, Tensor>} gradients */
const scaleGradient = ({ gamma, beta }) => ({ dw: { kernel: gamma, bias: beta } });

/** How the reference names what a graph op reads and writes. @type {Record<string, (inputs: Record<string, any>, attrs: any) => Record<string, any>>} */
const adapters = {
  embedding: ({ x, w }) => reference.embedding({ x, table: w.kernel }, {}),
  embedding_grad_weights: ({ x, dy }, attrs) => ({ dw: { kernel: reference.embedding_grad_weights({ x, dy }, attrs).table, bias: null } }),
  affine: ({ x, w }) => reference.affine({ x: rows(x), kernel: w.kernel, bias: w.bias }, {}),
  affine_grad_input: ({ dy, w }) => reference.affine_grad_input({ dy, kernel: w.kernel }, {}),
  affine_grad_weights: ({ x, dy }) => ({ dw: reference.affine_grad_weights({ x: rows(x), dy }, {}) }),
  conv2d: ({ x, w }, attrs) => reference.conv2d({ x, kernel: w.kernel, bias: w.bias }, attrs),
  conv2d_grad_input: ({ dy, w }, attrs) => reference.conv2d_grad_input({ dy, kernel: w.kernel }, attrs),
  conv2d_grad_weights: (inputs, attrs) => ({ dw: reference.conv2d_grad_weights(inputs, attrs) }),
  sample_norm: (/** @type {any} */ inputs, attrs) => reference.sample_norm(scaled(inputs), attrs),
  sample_norm_grad_sums: (/** @type {any} */ inputs, attrs) => reference.sample_norm_grad_sums(scaled(inputs), attrs),
  sample_norm_grad_input: (/** @type {any} */ inputs, attrs) => reference.sample_norm_grad_input(scaled(inputs), attrs),
  sample_norm_grad_weights: (inputs, attrs) => scaleGradient(reference.sample_norm_grad_weights(inputs, attrs)),
  batch_norm: (/** @type {any} */ inputs, attrs) => reference.batch_norm(scaled(inputs), attrs),
  batch_norm_grad_weights: (inputs, attrs) => scaleGradient(reference.batch_norm_grad_weights(inputs, attrs)),
  batch_norm_grad_scale: (/** @type {any} */ inputs, attrs) => reference.batch_norm_grad_scale(scaled(inputs), attrs),
  batch_norm_grad_input: ({ dw, ...inputs }, attrs) =>
    reference.batch_norm_grad_input({ ...scaled(/** @type {any} */ (inputs)), dgamma: dw.kernel, dbeta: dw.bias }, attrs),
  loss: ({ z, target, ...others }, attrs) => reference.loss({ z: rows(z), target: rows(target), ...others }, attrs),
  loss_grad: ({ z, target, ...others }, attrs) => reference.loss_grad({ z: rows(z), target: rows(target), ...others }, attrs),
  accuracy: ({ z, target }, attrs) => reference.accuracy({ z: rows(z), target: rows(target) }, attrs),
  dropout: ({ x }, { t, batch = t - 1, ...draw }) => reference.dropout({ x, mask: { shape: x.shape, data: dropoutMask(draw, batch, x.data.length) } }, draw),
  // What is joined may have got its shape by flattening, or by another view.
  add: ({ a, b }) => reference.add({ a: rows(a), b: rows(b) }, {}),
  multiply: ({ a, b }) => reference.multiply({ a: rows(a), b: rows(b) }, {}),
  accumulate: ({ dw, sum }, { keep = false }) => {
    const part = (/** @type {"kernel"|"bias"} */ key) => dw[key] && (keep ? zip(dw[key], sum[key], (a, b) => a + b) : dw[key]);
    return { sum: { kernel: part("kernel"), bias: part("bias") } };
  },
  grad_norm: (gradients, attrs) =>
    reference.grad_norm({ gradients: Object.values(gradients).flatMap(({ kernel, bias }) => (bias ? [kernel, bias] : [kernel])) }, attrs),
  update({ w, dw, factor, ...states }, attrs) {
    const part = (/** @type {"kernel"|"bias"} */ key) =>
      reference.update({ w: w[key], dw: dw[key], ...Object.fromEntries(Object.entries(states).map(([name, state]) => [name, state[key]])) }, { ...attrs, factor: factor?.data[0], decay: attrs.decay && key === "kernel" });
    const [kernel, bias] = [part("kernel"), w.bias && part("bias")];
    return Object.fromEntries(Object.keys(kernel).map((name) => [name, { kernel: kernel[name], bias: bias && bias[name] }]));
  },
};

/**
 * An image as an op sees it, which may be a view of a tensor that is held in another shape.
 * @param {any} value @param {string} key the op's name for it @param {any} attrs
 */
function seen(value, key, { input, output }) {
  const shape = key === "x" || key === "dx" ? input : key === "y" || key === "dy" ? output : null;
  const fits = shape && value.data && value.data.length === value.shape[0] * size(shape);
  return fits ? { shape: [value.shape[0], ...shape], data: value.data } : value;
}

/**
 * @param {Op[]} ops in an order of execution
 * @param {Map<string, import("../nn/graph.js").Tensor>} tensors of the graph
 * @param {Values} values what the ops read; what they write is added
 * @param {{lr: number, t: number, keep?: boolean, share?: number, batch?: number}} [step] of the optimizer, t counted from 1;
 *   `batch` of the run, counted from 0: t - 1 where each step has one
 */
export function execute(ops, tensors, values, step) {
  for (const op of ops) {
    const inputs = Object.fromEntries(Object.entries(op.inputs).map(([key, name]) => [key, seen(values.get(name), key, op.attrs)]));
    const outputs = (adapters[op.type] ?? reference[op.type])(inputs, { ...op.attrs, ...step });
    for (const [key, name] of Object.entries(op.outputs)) {
      const info = tensors.get(name);
      const value = outputs[key];
      const image = info?.batched && info.kind !== "rows";
      // Of a layer without bias.
      const alone = info?.kind === "gradient" && !info.batched && !info.bias;
      values.set(name, image ? { shape: [value.shape[0], ...info.shape], data: value.data } : alone ? { ...value, bias: null } : value);
    }
  }
}
