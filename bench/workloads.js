// The workloads of the bench, as every contender gets them: shapes, data, initial weights; and as a job spec of our engine.
// Sizes are in workloads.json. Nothing here depends on a peer; workloads.py makes the same bits for PyTorch.
import listed from "./workloads.json" with { type: "json" };

/**
 * @typedef {object} Workload
 * @property {string} name
 * @property {number} rows of the data set @property {number} batch
 * @property {number[]} input @property {any[]} hidden layers before the last @property {number} outputs
 * @property {"bce"|"softmax_cross_entropy"} loss
 * @property {any} optimizer
 */
/** A layer with weights: kernel [in, out] or [height, width, in, out]. @typedef {{name: string, kernel: Float32Array, bias: Float32Array, shape: number[]}} Weighted */
/** @typedef {{shape: number[], data: Float32Array}} Inputs */
/** @typedef {{shape: number[], data: Float32Array|Int32Array}} Targets class numbers [rows], or values [rows, outputs] */

/** @type {Workload[]} */
export const workloads = /** @type {any} */ (listed);

/** All layers, the last one included. @param {Workload} workload */
export const layersOf = ({ hidden, outputs }) => [...hidden, { type: "dense", units: outputs, activation: "linear" }];

/** Rows stay in their order, so that all contenders see the same batches. @param {Workload} workload @param {number} steps */
export function specOf(workload, steps) {
  const { input, loss, optimizer, batch } = workload;
  return {
    model: { input, layers: layersOf(workload) },
    loss,
    optimizer,
    train: { steps, batch_size: batch, seed: 1, shuffle: false },
    diagnostics: "none",
  };
}

/** Uniform in [-0.5, 0.5), the same in every language. @param {number} seed @returns {() => number} */
function uniformFrom(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
}

/** Data that a net can fit in part: labels from a random linear map. @param {Workload} workload @returns {{x: Inputs, y: Targets}} */
export function dataOf({ rows, input, outputs, loss }) {
  const inputs = input.reduce((a, b) => a * b, 1);
  const uniform = uniformFrom(12345);
  const x = Float32Array.from({ length: rows * inputs }, uniform);
  const map = Float32Array.from({ length: inputs * outputs }, uniform);
  const y = loss === "bce" ? new Float32Array(rows * outputs) : new Int32Array(rows);
  for (let r = 0; r < rows; r++) {
    let [best, at] = [-Infinity, 0];
    for (let c = 0; c < outputs; c++) {
      let sum = 0;
      for (let i = 0; i < Math.min(inputs, 64); i++) sum += x[r * inputs + i] * map[i * outputs + c];
      if (loss === "bce") y[r * outputs + c] = sum > 0 ? 1 : 0;
      else if (sum > best) [best, at] = [sum, c];
    }
    if (loss !== "bce") y[r] = at;
  }
  return { x: { shape: [rows, ...input], data: x }, y: { shape: loss === "bce" ? [rows, outputs] : [rows], data: y } };
}

/** Initial weights (he_uniform, biases 0) of the layers that have some, in order. @param {Workload} workload @returns {Weighted[]} */
export function weightsOf(workload) {
  /** @type {Weighted[]} */
  const weighted = [];
  /** @type {Record<string, number>} */
  const counts = {};
  let shape = workload.input;
  for (const layer of layersOf(workload)) {
    if (layer.type === "dense" || layer.type === "conv2d") {
      const kernel = layer.type === "dense" ? [shape[0], layer.units] : [layer.kernel, layer.kernel, shape[2], layer.filters];
      const outputs = kernel[kernel.length - 1];
      const size = kernel.reduce((a, b) => a * b, 1);
      const limit = Math.sqrt(6 / (size / outputs));
      const uniform = uniformFrom(54321 + weighted.length);
      counts[layer.type] = (counts[layer.type] ?? 0) + 1;
      weighted.push({
        name: `${layer.type}_${counts[layer.type]}`,
        shape: kernel,
        kernel: Float32Array.from({ length: size }, () => uniform() * 2 * limit),
        bias: new Float32Array(outputs),
      });
    }
    shape = outputShape(layer, shape);
  }
  return weighted;
}

/** @param {any} layer @param {number[]} shape of its input, without the batch @returns {number[]} */
export function outputShape(layer, shape) {
  const [h, w] = shape;
  if (layer.type === "dense") return [layer.units];
  if (layer.type === "conv2d") return [h - layer.kernel + 1, w - layer.kernel + 1, layer.filters];
  if (layer.type === "max_pool2d") return [Math.floor(h / layer.size), Math.floor(w / layer.size), shape[2]];
  if (layer.type === "flatten") return [shape.reduce((a, b) => a * b, 1)];
  throw new Error(`${layer.type}: the bench knows dense, conv2d (stride 1, valid), max_pool2d and flatten`);
}

/** The data cut into whole batches. @param {Workload} workload @returns {{x: Inputs, y: Targets}[]} */
export function batchesOf(workload) {
  const { rows, batch } = workload;
  if (rows % batch !== 0) throw new Error(`${workload.name}: ${rows} rows are no whole number of batches of ${batch}`);
  const { x, y } = dataOf(workload);
  const cut = (/** @type {any} */ { shape, data }, /** @type {number} */ b) => {
    const size = (data.length / rows) * batch;
    return { shape: [batch, ...shape.slice(1)], data: data.subarray(b * size, (b + 1) * size) };
  };
  return Array.from({ length: rows / batch }, (_, b) => ({ x: cut(x, b), y: cut(y, b) }));
}
