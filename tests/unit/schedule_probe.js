// schedule_probe.js: the learning rates of a run, for test_optimizers_torch.py.
import { learningRate } from "../../browser_runtime/nn/schedules.js";

/** @param {any} optimizer the spec's @param {number} total */
export function rates(optimizer, total) {
  return Array.from({ length: total }, (_, t) => learningRate(optimizer, t, total));
}
