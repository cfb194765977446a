// What is wrong with a spec's metrics and its early stopping; the same as texelgrad/spec_metrics.py.
import { losses, lossType } from "./losses.js";
import { metricsOf, metricTypes } from "./metrics.js";

/** @typedef {(field: string, value: unknown, message: string) => void} Report */

const MAX_CONFUSION_CLASSES = 100;
const DEFAULT_K = 5;
const AVERAGED = ["precision", "recall", "f1"];

/** @param {any} spec validated field by field @param {Report} fault */
export function measureFaults(spec, fault) {
  const metrics = metricsOf(spec);
  metrics.forEach(({ type, k = null, average = null }, i) => {
    const field = `metrics.${i}`;
    const { of } = metricTypes[/** @type {string} */ (type)];
    if (metrics.slice(0, i).some((other) => other.type === type)) fault(field, type, `${type} is named twice; legal: each metric once`);
    if (k !== null && type !== "top_k_accuracy") fault(`${field}.k`, k, `is no option of ${type}; legal: null`);
    if (average !== null && !AVERAGED.includes(/** @type {string} */ (type))) fault(`${field}.average`, average, `is no option of ${type}; legal: null`);
    const over = losses[lossType(spec)].of;
    if (over !== of) fault(field, type, `measures ${of}, but ${lossType(spec)} is a loss over ${over}`);
    else if (type === "top_k_accuracy" && lossType(spec) !== "softmax_cross_entropy") fault(field, type, "needs softmax_cross_entropy");
  });
  const { fraction, rows } = spec.data.validation;
  for (const name of fraction === 0 && rows === null ? ["evaluate_every", "early_stopping"] : []) {
    if (spec.train[name] !== null) fault(`train.${name}`, undefined, "needs validation rows; legal: null, or data.validation with a fraction or rows");
  }
  const { early_stopping: stopping } = spec.train;
  if (!stopping) return;
  const known = ["val_loss", ...metrics.filter(({ type }) => !metricTypes[/** @type {string} */ (type)].table).map(({ type }) => `val_${type}`)];
  if (!known.includes(stopping.metric)) fault("train.early_stopping.metric", stopping.metric, `is not measured; legal: ${known.join(", ")}`);
}

/** What depends on the number of outputs. @param {any} spec @param {number} units @param {Report} fault */
export function outputFaults(spec, units, fault) {
  metricsOf(spec).forEach(({ type, k, average }, i) => {
    const field = `metrics.${i}`;
    const [bce, chosen] = [lossType(spec) !== "softmax_cross_entropy", k ?? DEFAULT_K];
    if (type === "top_k_accuracy" && chosen >= units) fault(`${field}.k`, chosen, `is no choice among ${units} classes; legal: 1 to ${units - 1}`);
    if (average === "binary" && units !== (bce ? 1 : 2)) fault(`${field}.average`, average, `binary needs two classes, not ${units} outputs; legal: macro`);
    if (type !== "confusion_matrix") return;
    if (bce && units > 1) fault(field, type, "needs one class a row; there are several outputs");
    if (units > MAX_CONFUSION_CLASSES) fault(field, type, `of ${units} classes is too large; legal: at most ${MAX_CONFUSION_CLASSES} classes`);
  });
}
