// Metrics, as the planner knows them: what a spec asks for, and for which losses each means something. How they are computed: train/metrics.js.

/** One metric of a spec with its defaults filled in. @typedef {{type: string, k: number, average: "binary"|"macro"}} Metric */

/**
 * `of`: what the loss must be over. A `table` is no number and has no curve. `smaller` is better.
 * @type {Record<string, {of: "classes"|"values", table?: boolean, smaller?: boolean}>}
 */
export const metricTypes = {
  accuracy: { of: "classes" },
  top_k_accuracy: { of: "classes" },
  precision: { of: "classes" },
  recall: { of: "classes" },
  f1: { of: "classes" },
  auc: { of: "classes" },
  confusion_matrix: { of: "classes", table: true },
  mae: { of: "values", smaller: true },
  mse: { of: "values", smaller: true },
  r2: { of: "values" },
};

/** @param {{metrics: (string|Partial<Metric>)[]}} spec @returns {Partial<Metric>[]} as given, none by its name alone */
export const metricsOf = ({ metrics }) => metrics.map((metric) => (typeof metric === "string" ? { type: metric } : metric));

/** Whether a spec asks for a metric. @param {any} spec @param {string} type */
export const asksFor = (spec, type) => metricsOf(spec).some((metric) => metric.type === type);

/** Those that the host computes from the network's outputs; accuracy is the GPU's. @param {any} spec */
export const hostMetrics = (spec) => metricsOf(spec).filter(({ type }) => type !== "accuracy");
