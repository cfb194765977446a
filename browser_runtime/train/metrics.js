// Metrics: what is measured of outputs and targets on the host, in float64, block by block of rows. Accuracy is the GPU's (nn/metrics.js).
// Definitions are those of scikit-learn; docs/numerics.md states them.
import { EngineError } from "../errors.js";
import { lossType } from "../nn/losses.js";
import { hostMetrics } from "../nn/metrics.js";

/** @import { Metric } from "../nn/metrics.js" */

/** A block of rows: logits or values, and what they should be. `truth` is the class of each row for softmax, else a value for each output.
 * @typedef {{z: Float32Array, rows: number, outputs: number, truth: Float64Array}} Block */
/** @typedef {{add: (block: Block) => void, result: () => number|number[][]}} Collector */
/** @typedef {{rows: number, outputs: number, softmax: boolean}} Shape of all the rows that come */

const MAX_SCORES = 1 << 24; // that auc keeps: 128 MiB; texelgrad/spec_metrics.py refuses the same before a job is queued
const DEFAULT_K = 5;

/** The first largest of a row; NaN is never larger. @param {ArrayLike<number>} values @param {number} from @param {number} count */
function firstLargest(values, from, count) {
  let best = 0;
  for (let n = 1; n < count; n++) if (values[from + n] > values[from + best]) best = n;
  return best;
}

/** Whether an output says yes, and whether it should. */
const predictsYes = (/** @type {number} */ z) => z > 0;
const isYes = (/** @type {number} */ y) => y > 0.5;

/** Where a row's class is among the largest k; of equal logits the first is the larger. @param {number} k @returns {Collector} */
function topK(k) {
  let [right, all] = [0, 0];
  return {
    add({ z, rows, outputs, truth }) {
      for (let row = 0; row < rows; row++) {
        const wanted = z[row * outputs + truth[row]];
        let above = 0;
        for (let n = 0; n < outputs; n++) {
          const value = z[row * outputs + n];
          if (value > wanted || (value === wanted && n < truth[row])) above += 1;
        }
        if (above < k && !Number.isNaN(wanted)) right += 1;
      }
      all += rows;
    },
    result: () => right / all,
  };
}

/** Right predictions, predictions and rows of each class, or of each output for bce. */
class Counts {
  /** @param {Shape} shape */
  constructor({ outputs, softmax }) {
    this.softmax = softmax;
    this.right = new Float64Array(outputs);
    this.predicted = new Float64Array(outputs);
    this.actual = new Float64Array(outputs);
  }

  /** @param {Block} block */
  add({ z, rows, outputs, truth }) {
    const { right, predicted, actual } = this;
    for (let row = 0; row < rows; row++) {
      if (this.softmax) {
        const guess = firstLargest(z, row * outputs, outputs);
        predicted[guess] += 1;
        actual[truth[row]] += 1;
        if (guess === truth[row]) right[guess] += 1;
        continue;
      }
      for (let n = 0; n < outputs; n++) {
        const [guess, yes] = [predictsYes(z[row * outputs + n]), isYes(truth[row * outputs + n])];
        if (guess) predicted[n] += 1;
        if (yes) actual[n] += 1;
        if (guess && yes) right[n] += 1;
      }
    }
  }

  /**
   * Of class 1, or the mean over the classes that some row has or is said to have; over all outputs for bce.
   * @param {(right: number, predicted: number, actual: number) => number} score @param {"binary"|"macro"} average
   */
  mean(score, average) {
    const { right, predicted, actual, softmax } = this;
    const of = (/** @type {number} */ n) => score(right[n], predicted[n], actual[n]);
    if (average === "binary") return of(right.length - 1);
    const there = [...right.keys()].filter((n) => !softmax || predicted[n] + actual[n] > 0);
    return there.reduce((sum, n) => sum + of(n), 0) / there.length;
  }
}

/** 0 where it would be 0 / 0. @param {number} a @param {number} b */
const share = (a, b) => (b === 0 ? 0 : a / b);

/** @type {Record<string, (right: number, predicted: number, actual: number) => number>} */
const scores = {
  precision: (right, predicted) => share(right, predicted),
  recall: (right, _, actual) => share(right, actual),
  f1: (right, predicted, actual) => share(2 * right, predicted + actual),
};

/** @param {string} type @param {Metric["average"]|undefined|null} average @param {Shape} shape @returns {Collector} */
function counted(type, average, shape) {
  const counts = new Counts(shape);
  const binary = shape.outputs === 1;
  return { add: (block) => counts.add(block), result: () => counts.mean(scores[type], average ?? (binary ? "binary" : "macro")) };
}

/** Rows are classes as they are, columns as predicted. @param {Shape} shape @returns {Collector} */
function confusion({ outputs, softmax }) {
  const classes = softmax ? outputs : 2;
  const matrix = Array.from({ length: classes }, () => new Array(classes).fill(0));
  return {
    add({ z, rows, truth }) {
      for (let row = 0; row < rows; row++) {
        if (softmax) matrix[truth[row]][firstLargest(z, row * outputs, outputs)] += 1;
        else matrix[Number(isYes(truth[row]))][Number(predictsYes(z[row]))] += 1;
      }
    },
    result: () => matrix,
  };
}

/**
 * The area under the ROC curve: the chance that a row of a class scores above one of another, equal scores counting half. Of several classes
 * or outputs each against the rest, and their mean; those that all or no rows have are left out.
 * @param {Shape} shape @returns {Collector}
 */
function auc({ rows: total, outputs, softmax }) {
  if (total * outputs > MAX_SCORES) {
    throw new EngineError("too_large", `metrics: auc keeps a score for each of ${total} rows and ${outputs} outputs; at most ${MAX_SCORES}`, { field: "metrics" });
  }
  // Those of an output together.
  const values = new Float64Array(total * outputs);
  const yes = new Uint8Array(total * outputs);
  let rowsSoFar = 0;
  return {
    add({ z, rows, truth }) {
      for (let row = 0; row < rows; row++) {
        // Rows are compared by their log p, which orders them as p does and has no ties at 1.
        const base = softmax ? logSumExp(z, row * outputs, outputs) : 0;
        for (let n = 0; n < outputs; n++) {
          const at = n * total + rowsSoFar + row;
          values[at] = z[row * outputs + n] - base;
          yes[at] = Number(softmax ? truth[row] === n : isYes(truth[row * outputs + n]));
        }
      }
      rowsSoFar += rows;
    },
    result() {
      const areas = Array.from({ length: outputs }, (_, n) => area(values.subarray(n * total, (n + 1) * total), yes.subarray(n * total, (n + 1) * total)));
      const known = areas.filter((value) => value !== null);
      return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : NaN;
    },
  };
}

/** @param {Float64Array} values @param {Uint8Array} yes @returns {number|null} null where all rows are of one kind */
function area(values, yes) {
  if (values.some(Number.isNaN)) return NaN;
  const above = values.filter((_, i) => yes[i]).sort();
  const below = values.filter((_, i) => !yes[i]).sort();
  if (above.length === 0 || below.length === 0) return null;
  // Halves of pairs, so that all are whole numbers.
  let [halves, less, upTo] = [0, 0, 0];
  for (const value of above) {
    while (less < below.length && below[less] < value) less += 1;
    upTo = Math.max(upTo, less);
    while (upTo < below.length && below[upTo] === value) upTo += 1;
    halves += less + upTo;
  }
  return halves / 2 / above.length / below.length;
}

/** @param {Float32Array} z @param {number} from @param {number} count */
function logSumExp(z, from, count) {
  const top = z[from + firstLargest(z, from, count)];
  let sum = 0;
  for (let n = 0; n < count; n++) sum += Math.exp(z[from + n] - top);
  return top + Math.log(sum);
}

/** The mean over rows and outputs. @param {(error: number) => number} of @returns {Collector} */
function meanError(of) {
  let [sum, all] = [0, 0];
  return {
    add({ z, truth }) {
      let block = 0;
      for (let i = 0; i < truth.length; i++) block += of(z[i] - truth[i]);
      sum += block;
      all += truth.length;
    },
    result: () => sum / all,
  };
}

/**
 * The mean over the outputs of 1 - sum of squared errors / sum of squares about the targets' mean. An output whose targets are all equal has
 * 1 where it is right, else 0.
 * @param {Shape} shape @returns {Collector}
 */
function r2({ outputs }) {
  const [errors, squares, mean] = [new Float64Array(outputs), new Float64Array(outputs), new Float64Array(outputs)];
  let count = 0;
  return {
    add({ z, rows, truth }) {
      for (let row = 0; row < rows; row++) {
        count += 1;
        for (let n = 0; n < outputs; n++) {
          const y = truth[row * outputs + n];
          errors[n] += (z[row * outputs + n] - y) ** 2;
          const delta = y - mean[n];
          mean[n] += delta / count;
          squares[n] += delta * (y - mean[n]);
        }
      }
    },
    result: () => (count < 2 ? NaN : errors.reduce((sum, error, n) => sum + (squares[n] > 0 ? 1 - error / squares[n] : Number(error === 0)), 0) / outputs),
  };
}

/** @type {Record<string, (metric: Partial<Metric>, shape: Shape) => Collector>} */
const collectors = {
  top_k_accuracy: ({ k }) => topK(k ?? DEFAULT_K),
  precision: ({ average }, shape) => counted("precision", average, shape),
  recall: ({ average }, shape) => counted("recall", average, shape),
  f1: ({ average }, shape) => counted("f1", average, shape),
  confusion_matrix: (_, shape) => confusion(shape),
  auc: (_, shape) => auc(shape),
  mae: () => meanError(Math.abs),
  mse: () => meanError((error) => error * error),
  r2: (_, shape) => r2(shape),
};

/** Measures the rows of one pass. */
export class Measures {
  /**
   * @param {any} spec @param {{rows: number, outputs: number, labels: "index"|"values"}} pass
   * @throws {EngineError} too_large where a metric would keep too much
   */
  constructor(spec, { rows, outputs, labels }) {
    this.outputs = outputs;
    this.softmax = lossType(spec) === "softmax_cross_entropy";
    this.labels = labels;
    this.collectors = hostMetrics(spec).map((metric) => ({
      name: /** @type {string} */ (metric.type),
      collector: collectors[/** @type {string} */ (metric.type)](metric, { rows, outputs, softmax: this.softmax }),
    }));
  }

  /** @param {Float32Array} z [rows, outputs] @param {Float32Array} targets [rows, outputs], or class numbers [rows] */
  add(z, targets) {
    const { outputs } = this;
    const rows = z.length / outputs;
    let truth = Float64Array.from(targets);
    if (this.softmax && this.labels === "values") truth = Float64Array.from({ length: rows }, (_, row) => firstLargest(targets, row * outputs, outputs));
    for (const { collector } of this.collectors) collector.add({ z, rows, outputs, truth });
  }

  /** @returns {Record<string, number|number[][]>} by the metric's name */
  result() {
    return Object.fromEntries(this.collectors.map(({ name, collector }) => [name, collector.result()]));
  }
}
