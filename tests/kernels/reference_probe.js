// reference_probe.js: the reference's ops and its other tables, one call each, for tests/unit/test_reference.py.
import { ops } from "../../browser_runtime/reference/index.js";
import { lossMean } from "../../browser_runtime/reference/losses.js";
import { initialStates } from "../../browser_runtime/reference/optimizers.js";
import { schedules } from "../../browser_runtime/reference/schedules.js";

export { lossMean };

/** @param {string} name @param {Record<string, any>} inputs @param {any} [attrs] */
export function op(name, inputs, attrs = {}) {
  return ops[name](inputs, attrs);
}

/**
 * Several updates of one parameter.
 * @param {any} w @param {any[]} gradients one a step @param {any} optimizer @param {number[]} rates @param {any} [limits] of the gradient
 * @returns {any[]} the parameter after each step
 */
export function optimize(w, gradients, optimizer, rates, limits = {}) {
  let states = initialStates(w, optimizer);
  return gradients.map((dw, step) => {
    const { w: next, ...nextStates } = ops.update({ w, dw, ...states }, { optimizer, lr: rates[step], t: step + 1, ...limits });
    [w, states] = [next, nextStates];
    return w;
  });
}

/** @param {string} name @param {any} options @param {number} total */
export function rates(name, options, total) {
  return Array.from({ length: total }, (_, t) => schedules[name](options, t, total));
}
