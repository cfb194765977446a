// The spec of a page: what asks the service for something that a page does not do by itself is refused there, with what a page does instead.
import { EngineError, shown } from "../errors.js";
import { metricsOf } from "./metrics.js";
import { validateSpec } from "./spec.js";

/** What only the service sees to, null where it is left out; and what a page does instead. */
const OF_THE_SERVICE = [
  { section: "data", name: "synthetic", instead: "only the service makes up data; give the page's own as options.data" },
  { section: "limits", name: "wall_s", instead: "only the service watches this clock; give run() a signal, such as AbortSignal.timeout(ms)" },
  { section: "checkpoint", name: "every_steps", instead: "only the service saves checkpoints; call session.checkpoint() between two run({steps})" },
  { section: null, name: "deadline", instead: "only the service has a queue to wait in; a page begins at once" },
];

/** @param {any} spec validated @param {string|null} section @returns {any} */
const at = (spec, section) => (section ? spec[section] : spec);

/**
 * @param {any} input a job spec as the page wrote it
 * @returns {any} a checked copy with all defaults filled in
 * @throws {EngineError} spec_invalid, as validateSpec(), and where something in it would be ignored
 */
export function validatePageSpec(input) {
  const spec = validateSpec(input);
  for (const { section, name, instead } of OF_THE_SERVICE) {
    const value = at(spec, section)[name];
    if (value !== null) throw ignored(section ? `${section}.${name}` : name, value, instead);
  }
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

/** Metrics that a run without validation rows would never measure. @param {any} spec validated @throws {EngineError} spec_invalid */
export function checkMeasured(spec) {
  const { fraction, rows } = spec.data.validation;
  if (spec.metrics.length === 0 || fraction > 0 || rows !== null) return;
  const names = metricsOf(spec).map(({ type }) => type);
  throw ignored("metrics", names, "are measured on validation rows, and there are none; give data.validation, or take compile() and evaluate({x, y})");
}

/** @param {string} field @param {unknown} value @param {string} instead */
const ignored = (field, value, instead) => new EngineError("spec_invalid", `${field}: ${instead}; legal here: ${Array.isArray(value) ? "none" : "null"}, not ${shown(value)}`, { field });
