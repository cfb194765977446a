// The spec of a page: what asks the service for something that a page does not do by itself is refused there, with what a page does instead.
import { metricsOf } from "./metrics.js";
import { checkSpec, refuse } from "./spec.js";

/** @import { Fault } from "./spec.js" */

/** What only the service sees to, null where it is left out; and what a page does instead. */
const OF_THE_SERVICE = [
  { section: "data", name: "synthetic", instead: "only the service makes up data; give the page's own as options.data" },
  { section: "limits", name: "wall_s", instead: "only the service watches this clock; give run() a signal, such as AbortSignal.timeout(ms)" },
  { section: "checkpoint", name: "every_steps", instead: "only the service saves checkpoints; call session.checkpoint() between two run({steps})" },
  { section: null, name: "deadline", instead: "only the service has a queue to wait in; a page begins at once" },
];

/**
 * @param {any} input a job spec as the page wrote it @param {{measures?: boolean}} [call] whether it measures the spec's metrics on no rows but those of the spec
 * @returns {any} a checked copy with all defaults filled in
 * @throws {EngineError} spec_invalid, as validateSpec(), and where something in it would be ignored
 */
export function validatePageSpec(input, { measures = false } = {}) {
  const { spec, faults } = checkSpec(input);
  const unmeasured = measures && faults.length === 0 ? unmeasuredFaults(spec) : [];
  for (const { section, name, instead } of OF_THE_SERVICE) {
    const [value, field] = section ? [input[section]?.[name], `${section}.${name}`] : [input[name], name];
    const ignored = (value ?? null) !== null && !faults.some((fault) => fault.field === field);
    if (ignored) faults.push({ field, value, message: `${instead}; legal here: null` });
  }
  refuse([...faults, ...unmeasured]);
  return spec;
}

/** A job's spec without what the service itself sees to. @param {any} spec validated @returns {any} */
export function withoutTheServices(spec) {
  const left = { ...spec };
  for (const { section, name } of OF_THE_SERVICE) {
    if (section) left[section] = { ...left[section], [name]: null };
    else left[name] = null;
  }
  return left;
}

/** Metrics that a run without validation rows would never measure. @param {any} spec validated @returns {Fault[]} */
function unmeasuredFaults(spec) {
  const { fraction, rows } = spec.data.validation;
  if (spec.metrics.length === 0 || fraction > 0 || rows !== null) return [];
  const message = "are measured on validation rows, and there are none; give data.validation, or take compile() and evaluate({x, y}); legal here: none";
  return [{ field: "metrics", value: metricsOf(spec).map(({ type }) => type), message }];
}
