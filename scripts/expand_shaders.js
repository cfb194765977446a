// Writes every kernel that the engine can compile, as the text that a driver would get, to standard output as JSON:
// [{name, text, origins}], origins as runs of lines. Kernels come from plans lowered over a matrix of job specs, so nothing is listed twice.
import { readdirSync, readFileSync } from "node:fs";
import { chooser } from "../browser_runtime/backends/webgl2/convolution.js";
import { ROWS } from "../browser_runtime/backends/webgl2/fragment_rows.js";
import { kernelText } from "../browser_runtime/backends/webgl2/shader_source.js";
import { lower } from "../browser_runtime/backends/webgl2/lower.js";
import { optimizers } from "../browser_runtime/nn/optimizers.js";
import { buildPlan } from "../browser_runtime/plan/plan.js";
import { shapeJobs } from "./lib/shape_jobs.js";

const root = new URL("../shaders/", import.meta.url);
const files = Object.fromEntries(
  readdirSync(root, { recursive: true })
    .filter((path) => path.endsWith(".glsl"))
    .map((path) => [path.replaceAll("\\", "/"), readFileSync(new URL(path, root), "utf8")]),
);

const ACTIVATIONS = ["linear", "relu", "sigmoid", "tanh"];
/** The loss, what its labels are, and the units of its output. */
const LOSSES = [
  { loss: "bce", labels: "values", units: 1 },
  { loss: "bce", labels: "values", units: 3 },
  { loss: "bce", labels: "index", units: 1 },
  { loss: "mse", labels: "values", units: 5 },
  { loss: "softmax_cross_entropy", labels: "index", units: 10 },
  { loss: "softmax_cross_entropy", labels: "values", units: 10 },
  { loss: "softmax_cross_entropy", labels: "index", units: 100 },
  { loss: "softmax_cross_entropy", labels: "values", units: 100 },
];
const OPTIMIZERS = [
  { type: "sgd", lr: 0.1, momentum: 0 },
  { type: "sgd", lr: 0.1, momentum: 0.9 },
  { type: "adam", lr: 0.001, beta1: 0.9, beta2: 0.999, eps: 1e-8 },
];
/** Small nets update where the gradient is made, unless their batch is long; in wide ones that is a draw of its own. */
const SIZES = [{ inputs: 3, hidden: 5, batch: 16 }, { inputs: 3, hidden: 5, batch: 512 }, { inputs: 784, hidden: 512, batch: 128 }];
const DIALECTS = ["rgba32f", "rgba32ui"].flatMap((format) => ["texture", "texelFetch"].map((fetch) => ({ format, fetch })));
const LIMITS = { maxTextureSize: 8192, maxArrayLayers: 2048 };
/** Of renderers on the CPU every dialect; of GPUs, whose plans take more at once, theirs. */
const DEVICES = [
  ...[4, 8].map((maxDrawBuffers) => ({ limits: { ...LIMITS, maxDrawBuffers }, dialects: DIALECTS })),
  { limits: { ...LIMITS, maxDrawBuffers: 8, software: false }, dialects: DIALECTS.filter(({ format, fetch }) => format === "rgba32f" && fetch === "texelFetch") },
  // All products that can take rows from uniform blocks do, not large ones alone, and all gradients that may be are gated.
  {
    limits: { ...LIMITS, maxDrawBuffers: 8, copiedBlockBytes: 65_536 }, wanted: { ...ROWS.gpu, uniform: { products: 0, texels: 1 }, gated: { products: 0 } },
    dialects: DIALECTS.filter(({ format, fetch }) => (format === "rgba32f") === (fetch === "texelFetch")),
  },
];

/** Products that compute their operand, however small they are. */
const COMPUTING = [{ limits: { ...LIMITS, maxDrawBuffers: 8 }, wanted: { ...ROWS.gpu, activation: 8, computed: { products: 0, inputs: 4 } }, dialects: DIALECTS }];

const dense = (name, units, activation) => ({ type: "dense", name, units, activation, init: "glorot_uniform", use_bias: true });

/** Images: strides, paddings and channels that do and don't fill texels. @yields {{spec: object, labels: string, batch: number}} */
function* imageJobs() {
  for (const activation of ACTIVATIONS) {
    for (const optimizer of OPTIMIZERS) {
      for (const { channels, filters, stride, padding } of [
        { channels: 1, filters: 8, stride: 1, padding: "same" },
        { channels: 4, filters: 5, stride: 2, padding: "valid" },
        { channels: 3, filters: 8, stride: 1, padding: [[1, 0], [2, 1]] },
      ]) {
        const conv = { type: "conv2d", name: "c", filters, kernel: [3, 3], stride: [stride, stride], dilation: [1, 1], padding, groups: 1, activation, init: "he_uniform", use_bias: true };
        const pool = { type: "max_pool2d", name: "p", size: [2, 2], stride: [2, 2], padding: "valid" };
        const layers = [conv, pool, { ...conv, name: "c2" }, { ...conv, name: "c3", stride: [1, 1], padding: "same" }, { type: "flatten", name: "f" }, dense("d", 10, "linear")];
        const spec = { model: { input: [18, 19, channels], layers }, loss: "softmax_cross_entropy", metrics: ["accuracy"], optimizer, train: { batch_size: 16 } };
        yield { spec, labels: "index", batch: 16 };
      }
    }
  }
}

/** Losses with options, and losses of images. @yields {{spec: object, labels: string, batch: number}} */
function* lossJobs() {
  const optimizer = OPTIMIZERS[0];
  const conv = { type: "conv2d", name: "c", filters: 3, kernel: [3, 3], stride: [1, 1], dilation: [1, 1], padding: "same", groups: 1, activation: "linear", init: "he_uniform", use_bias: true };
  const softmax = { type: "softmax_cross_entropy", class_weights: null, label_smoothing: 0 };
  for (const loss of [{ type: "bce", pos_weight: 2, label_smoothing: 0.1 }, "bce", "mse", "mae", { type: "huber", delta: 1 }, "hinge"]) {
    const metrics = typeof loss === "string" && loss !== "mse" && loss !== "mae" ? ["accuracy"] : [];
    for (const layers of [[dense("d", 5, "linear")], [conv]]) {
      for (const activation of layers[0] === conv && metrics.length === 0 ? ["linear", "tanh"] : ["linear"]) {
        const input = layers[0] === conv ? [6, 5, 3] : [7];
        yield { spec: { model: { input, layers: [{ ...layers[0], activation }] }, loss, metrics, optimizer, train: { batch_size: 16 } }, labels: "values", batch: 16 };
      }
    }
  }
  for (const units of [3, 10, 100]) {
    for (const labels of ["index", "values"]) {
      for (const options of [{ label_smoothing: 0.1 }, { class_weights: new Array(units).fill(2) }, { class_weights: new Array(units).fill(2), label_smoothing: 0.1 }]) {
        const layers = [dense("d", units, "linear")];
        yield { spec: { model: { input: [7], layers }, loss: { ...softmax, ...options }, metrics: ["accuracy"], optimizer, train: { batch_size: 16 } }, labels, batch: 16 };
      }
    }
  }
}

/** Every optimizer with all that may be done to a gradient, and with none of it. @yields {{spec: object, labels: string, batch: number}} */
function* optimizerJobs() {
  const conv = { type: "conv2d", name: "c", filters: 5, kernel: [3, 3], stride: [1, 1], dilation: [1, 1], padding: "same", groups: 1, activation: "relu", init: "he_uniform", use_bias: true };
  const layers = [conv, { ...conv, name: "c2", lr_multiplier: 0.1 }, { type: "flatten", name: "f" }, dense("d", 10, "relu"), { ...dense("d2", 3, "linear"), use_bias: false }];
  const penalties = { l1: 0.1, l2: 0.1, weight_decay: 0.1 };
  const plain = [...Object.keys(optimizers).map((type) => ({ type })), { type: "sgd", momentum: 0.9, nesterov: true }, { type: "rmsprop", momentum: 0.9 }];
  for (const optimizer of plain) {
    for (const { more, telemetry, ...train } of [
      { more: {}, clip: null },
      { more: {}, clip: null, accumulate_steps: 2 },
      { more: {}, clip: null, telemetry: { gradient_norm: true } },
      { more: penalties, clip: { value: 1, global_norm: null } },
      { more: penalties, clip: { value: null, global_norm: 1 } },
    ]) {
      const spec = { model: { input: [6, 5, 3], layers }, loss: "mse", metrics: [], optimizer: { lr: 0.1, momentum: 0, ...optimizer, ...more }, train: { batch_size: 16, ...train }, telemetry };
      yield { spec, labels: "values", batch: 16 };
    }
  }
}

/** Graphs: sums, tensors with several readers, layers without bias. @yields {{spec: object, labels: string, batch: number}} */
function* graphJobs() {
  for (const activation of ACTIVATIONS) {
    for (const optimizer of OPTIMIZERS) {
      const conv = { type: "conv2d", filters: 5, kernel: [3, 3], stride: [1, 1], dilation: [1, 1], padding: "same", groups: 1, activation, init: "he_uniform", use_bias: false };
      const layers = [
        { ...conv, name: "c1" }, { ...conv, name: "c2" }, { type: "add", name: "a1", inputs: ["c1", "c2"], activation }, { type: "flatten", name: "f" },
        { ...dense("d1", 9, activation), use_bias: false }, dense("d2", 9, activation), { type: "add", name: "a2", inputs: ["d1", "d2"], activation }, dense("d3", 3, "linear"),
      ];
      yield { spec: { model: { input: [6, 5, 3], layers }, loss: "mse", metrics: [], optimizer, train: { batch_size: 16 } }, labels: "values", batch: 16 };
    }
  }
}

/** Groups of whole texels, of any size, and of one channel each; with bias and without. @yields {{spec: object, labels: string, batch: number}} */
function* groupedJobs() {
  for (const activation of ACTIVATIONS) {
    for (const use_bias of [true, false]) {
      const conv = { type: "conv2d", kernel: [3, 2], stride: [2, 1], dilation: [1, 2], padding: "same", activation, init: "he_uniform", use_bias };
      const groups = [[6, 1], [6, 6], [4, 2], [6, 2], [16, 2], [8, 2], [9, 1], [24, 3], [6, 3]];
      const layers = [...groups.map(([filters, groups], i) => ({ ...conv, name: `c${i}`, filters, groups })), { type: "flatten", name: "f" }, dense("d", 3, "linear")];
      const [optimizer] = OPTIMIZERS;
      yield { spec: { model: { input: [9, 8, 3], layers }, loss: "mse", metrics: [], optimizer, train: { batch_size: 16 } }, labels: "values", batch: 16 };
    }
  }
}

/** Normalizations: of rows and pixels, of groups that fill texels and do not, of batches; sums in one draw and in two. @yields {{spec: object, labels: string, batch: number}} */
function* normJobs() {
  // What an activation and an optimizer change are kernels of their own; images of 24 x 24 pixels are summed in parts.
  for (const [side, activations, optimizers] of [[5, ACTIVATIONS, OPTIMIZERS.slice(0, 1)], [5, ["tanh"], OPTIMIZERS], [24, ["tanh"], OPTIMIZERS.slice(2)]]) {
    for (const [activation, optimizer] of activations.flatMap((a) => optimizers.map((o) => [a, o]))) {
      const norm = (type, name, more = {}) => ({ type, name, eps: 1e-5, activation, ...more });
      const conv = { type: "conv2d", filters: 6, kernel: [3, 3], stride: [1, 1], dilation: [1, 1], padding: "same", groups: 1, activation, init: "he_uniform", use_bias: false };
      const layers = [
        norm("batch_norm", "b1", { momentum: 0.1 }), { ...conv, name: "c1" }, norm("group_norm", "g1", { groups: 2 }), { ...conv, filters: 8, name: "c2" }, norm("group_norm", "g2", { groups: 2 }),
        norm("batch_norm", "b0", { trainable: false }), { ...conv, name: "c3" }, norm("batch_norm", "b2", { momentum: 1 }), norm("layer_norm", "l1"), { type: "flatten", name: "f" },
        dense("d1", 9, activation), norm("layer_norm", "l2"), norm("batch_norm", "b3", { momentum: 0.1 }), dense("d2", 3, "linear"),
      ];
      yield { spec: { model: { input: [side, side, 3], layers }, loss: "mse", metrics: [], optimizer, train: { batch_size: 16 } }, labels: "values", batch: 16 };
    }
  }
}

/** Transposed convolutions, and those of one row. @yields {{spec: object, labels: string, batch: number}} */
function* spreadJobs() {
  for (const activation of ACTIVATIONS) {
    for (const use_bias of [true, false]) {
      const common = { activation, init: "he_uniform", use_bias };
      const transpose = { ...common, type: "conv2d_transpose", kernel: [3, 2], stride: [2, 3], dilation: [1, 2] };
      const row = { ...common, type: "conv1d", kernel: 3, stride: 2, dilation: 1, padding: "same" };
      const ends = [{ type: "flatten", name: "f" }, dense("d", 3, "linear")];
      const images = [{ ...transpose, name: "a", filters: 5, padding: "same" }, { ...transpose, name: "b", filters: 4, padding: [[1, 0], [2, 1]] }];
      const rows = [{ ...row, name: "a", filters: 4, groups: 1 }, { ...row, name: "b", filters: 4, groups: 4 }, { ...row, name: "c", filters: 6, groups: 2 }];
      for (const [input, layers] of [[[4, 3, 2], images], [[40, 3], rows]]) {
        yield { spec: { model: { input, layers: [...layers, ...ends] }, loss: "mse", metrics: [], optimizer: OPTIMIZERS[0], train: { batch_size: 16 } }, labels: "values", batch: 16 };
      }
    }
  }
}

/** Embeddings. @yields {{spec: object, labels: string, batch: number}} */
function* embeddingJobs() {
  for (const optimizer of OPTIMIZERS) {
    for (const [vocabulary, units, length] of [[5, 3, 7], [1000, 64, 50]]) {
      const layers = [{ type: "embedding", name: "e", vocabulary, units, init: "glorot_uniform" }, { type: "flatten", name: "f" }, dense("d", 3, "linear")];
      yield { spec: { model: { input: [length], layers }, loss: "mse", metrics: [], optimizer, train: { batch_size: 16 } }, labels: "values", batch: 16 };
    }
  }
}

/** Layers of few inputs, behind which a product computes what they make. @yields {{spec: object, labels: string, batch: number, devices: object[]}} */
function* operandJobs() {
  for (const activation of ACTIVATIONS) {
    for (const [inputs, use_bias] of [[1, true], [2, true], [3, false], [4, true]]) {
      const layers = [{ ...dense("d1", 270, "relu"), use_bias }, { ...dense("d2", 9, activation), use_bias }, dense("d3", 5, "linear")];
      yield { spec: { model: { input: [inputs], layers }, loss: "mse", metrics: [], optimizer: OPTIMIZERS[0], train: { batch_size: 16 } }, labels: "values", batch: 16, devices: COMPUTING };
    }
  }
}

/** @yields {{spec: object, labels: string, batch: number, devices?: object[]}} */
function* jobs() {
  yield* operandJobs();
  yield* embeddingJobs();
  yield* shapeJobs(OPTIMIZERS[0], ACTIVATIONS);
  yield* normJobs();
  for (const job of [...spreadJobs(), ...imageJobs()]) yield* [job, { ...job, algorithm: "im2col" }];
  yield* groupedJobs();
  yield* graphJobs();
  yield* optimizerJobs();
  for (const job of lossJobs()) yield* [job, { ...job, weighted: true }];
  for (const { loss, labels, units } of LOSSES) {
    for (const activation of ACTIVATIONS) {
      for (const optimizer of OPTIMIZERS) {
        for (const { inputs, hidden, batch } of SIZES) {
          // Only mse takes outputs that an activation has bent.
          const last = loss === "mse" ? activation : "linear";
          const layers = [dense("dense_1", hidden, activation), dense("dense_2", hidden, activation), dense("dense_3", units, last)];
          const metrics = loss === "mse" ? [] : ["accuracy"];
          yield { spec: { model: { input: [inputs], layers }, loss, metrics, optimizer, train: { batch_size: batch } }, labels, batch };
        }
      }
    }
  }
}

/** Every draw of a lowered plan, wherever it is kept. */
function draws({ phases, gathers, reductions }) {
  return [...[phases, gathers].flatMap((group) => Object.values(group).flat(2)), ...Object.values(reductions).map(({ draw }) => draw)];
}

/** Consecutive lines of a file as one [file, first line, how many]: each variant has hundreds. @param {{file: string, line: number}[]} origins */
function runs(origins) {
  /** @type {[string, number, number][]} */
  const found = [];
  for (const { file, line } of origins) {
    const last = found.at(-1);
    if (last && last[0] === file && last[1] + last[2] === line) last[2] += 1;
    else found.push([file, line, 1]);
  }
  return found;
}

const expanded = new Map();
for (const { spec, labels, batch, weighted = false, algorithm = "direct", devices = DEVICES } of jobs()) {
  for (const { limits, dialects, wanted } of devices) {
    const plan = buildPlan(spec, { labels, weighted }, chooser(limits, [batch], algorithm));
    const lowered = lower(plan, limits, { total: 1000, train: 800, validation: 200, batch }, wanted);
    for (const { source } of draws(lowered)) {
      for (const dialect of dialects) {
        const { text, origins } = kernelText(source, files, dialect);
        if (!expanded.has(text)) expanded.set(text, { name: source.shader, text, origins: runs(origins) });
      }
    }
  }
}
process.stdout.write(JSON.stringify([...expanded.values()]));
