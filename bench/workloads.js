// The workloads of the bench: nets of common sizes on synthetic data, as job specs of our engine. Sizes only; nothing here depends on a peer.

const dense = (/** @type {number} */ units, activation = "linear") => ({ type: "dense", units, activation });

/**
 * @typedef {object} Workload
 * @property {string} name
 * @property {number} rows of the data set @property {number} batch
 * @property {number[]} input @property {any[]} hidden layers before the last @property {number} outputs
 * @property {"bce"|"softmax_cross_entropy"} loss
 * @property {any} optimizer
 */

const relu = (/** @type {number} */ units) => dense(units, "relu");
const conv = (/** @type {number} */ filters) => ({ type: "conv2d", filters, kernel: 3, activation: "relu" });
const pool = { type: "max_pool2d", size: 2 };

/** @type {Workload[]} */
export const workloads = [
  { name: "seed-demo", rows: 100, batch: 100, input: [2], hidden: [relu(32)], outputs: 1, loss: "bce", optimizer: { type: "sgd", lr: 0.1 } },
  { name: "seed-128", rows: 100, batch: 100, input: [2], hidden: [relu(128)], outputs: 1, loss: "bce", optimizer: { type: "sgd", lr: 0.1 } },
  { name: "seed-3x256", rows: 500, batch: 500, input: [2], hidden: [relu(256), relu(256)], outputs: 1, loss: "bce", optimizer: { type: "sgd", lr: 0.1 } },
  { name: "mlp-mnist", rows: 1280, batch: 128, input: [784], hidden: [relu(512), relu(512)], outputs: 10, loss: "softmax_cross_entropy", optimizer: { type: "adam", lr: 0.001 } },
  {
    name: "cnn-mnist", rows: 640, batch: 64, input: [28, 28, 1], hidden: [conv(32), pool, conv(64), pool, { type: "flatten" }, relu(128)], outputs: 10,
    loss: "softmax_cross_entropy", optimizer: { type: "adam", lr: 0.001 },
  },
  { name: "mlp-wide", rows: 512, batch: 256, input: [1024], hidden: [relu(2048), relu(2048)], outputs: 1000, loss: "softmax_cross_entropy", optimizer: { type: "sgd", lr: 0.01 } },
];

/** @param {Workload} workload @param {number} steps */
export function specOf({ batch, input, hidden, outputs, loss, optimizer }, steps) {
  return {
    model: { input, layers: [...hidden, dense(outputs)] },
    loss,
    optimizer,
    train: { steps, batch_size: batch, seed: 1 },
    diagnostics: "none",
  };
}

/** Data that a net can fit in part: labels from a random linear map. @param {Workload} workload */
export function dataOf({ rows, input, outputs, loss }) {
  const inputs = input.reduce((a, b) => a * b, 1);
  let state = 12345;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
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
