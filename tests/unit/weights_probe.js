// weights_probe.js: the weights that a seed gives a spec, for test_initializers.py.
import { validateSpec } from "../../browser_runtime/nn/spec.js";
import { buildPlan } from "../../browser_runtime/plan/plan.js";
import { seededWeights } from "../../browser_runtime/train/weights.js";

/** @param {any} spec */
export function initialWeights(spec) {
  const filled = validateSpec(spec);
  return seededWeights(buildPlan(filled, { labels: "values" }), filled.train.seed);
}
