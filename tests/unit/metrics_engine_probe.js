// metrics_engine_probe.js: what the page measures of outputs and targets, for test_engine_metrics.py.
import { Measures } from "../../browser_runtime/train/metrics.js";

/**
 * @param {any} spec its loss and metrics
 * @param {{shape: number[], data: Float32Array}} outputs [rows, outputs]
 * @param {{shape: number[], data: ArrayLike<number>}} targets [rows] or [rows, outputs]
 * @param {number} block rows added at once
 */
export function measure(spec, outputs, targets, block) {
  const [rows, columns] = outputs.shape;
  const width = targets.data.length / rows;
  const measures = new Measures(spec, { rows, outputs: columns, labels: targets.shape.length === 1 && spec.loss === "softmax_cross_entropy" ? "index" : "values" });
  const values = Float32Array.from(targets.data);
  for (let row = 0; row < rows; row += block) {
    const end = Math.min(rows, row + block);
    measures.add(outputs.data.subarray(row * columns, end * columns), values.subarray(row * width, end * width));
  }
  return measures.result();
}

/** What is said where auc is to keep the scores of so many rows; null where nothing is. @param {number} rows @param {number} outputs */
export function refusal(rows, outputs) {
  try {
    new Measures({ loss: "bce", metrics: ["auc"] }, { rows, outputs, labels: "values" });
    return null;
  } catch (error) {
    const { code, message } = /** @type {any} */ (error);
    return { code, message };
  }
}
