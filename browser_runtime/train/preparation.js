// Preparation: what the data says before anything is uploaded.
import { size } from "../nn/graph.js";
import { arrayOf, dataField } from "../nn/inputs.js";
import { inputCheck, readClasses, targetCheck } from "./data.js";
import { fit } from "./normalization.js";
import { isStratified, split } from "./split.js";

/** @import { Plan } from "../plan/plan.js" */
/** @import { Normalizations } from "./normalization.js" */
/** @import { NamedData } from "./data.js" */

/**
 * The split, and what normalizes each input whose numbers are not looked up.
 * @param {any} spec @param {Plan} plan @param {NamedData} data @param {"index"|"values"} labels @param {AbortSignal} [signal]
 * @returns {Promise<import("./split.js").Split & {fitted: Normalizations}>}
 */
export async function prepare(spec, { lookups, outputShape }, { x, y }, labels, signal) {
  const classes = isStratified(spec) ? await readClasses(spec, y, targetCheck(spec, labels, size(outputShape)), signal) : null;
  const rows = split(spec, y.shape[0], classes);
  const { normalize } = spec.data;
  /** @type {Normalizations} */
  const fitted = {};
  if (normalize === "none" || normalize === "inherit") return { ...rows, fitted };
  for (const [name, source] of Object.entries(x)) {
    if (!lookups.has(arrayOf(name))) fitted[name] = await fit(normalize, source, rows.train, inputCheck(dataField(name)), signal);
  }
  return { ...rows, fitted };
}
