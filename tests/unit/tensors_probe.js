// tensors_probe.js: names and shapes of all that a weights file of the page holds, for test_initial_weights.py.
import { validateSpec } from "../../browser_runtime/nn/spec.js";
import { planFor } from "../../browser_runtime/train/estimate.js";
import { seededWeights } from "../../browser_runtime/train/weights.js";

/** @param {any} spec @param {number[]} x @param {number[]} y shapes of the data @returns {Record<string, number[]>} */
export function shapes(spec, x, y) {
  const { plan } = planFor(validateSpec(spec), { x: { input: { shape: x } }, y: { shape: y } });
  return Object.fromEntries(Object.entries(seededWeights(plan, 0)).map(([name, { shape }]) => [name, shape]));
}
