// Preparation: what the data says before anything is uploaded.
import { readClasses, valueCheck } from "./data.js";
import { fit } from "./normalization.js";
import { isStratified, split } from "./split.js";

/** @import { Normalization } from "./normalization.js" */
/** @import { Data } from "./session.js" */

/**
 * The split, and what normalizes the inputs.
 * @param {any} spec @param {Data} data @param {"index"|"values"} labels @param {number[]} outputShape @param {AbortSignal} [signal]
 * @returns {Promise<import("./split.js").Split & {normalization: Normalization|null}>}
 */
export async function prepare(spec, { x, y }, labels, outputShape, signal) {
  const outputs = outputShape.reduce((a, b) => a * b, 1);
  const classes = isStratified(spec) ? await readClasses(spec, y, valueCheck("y", spec, labels, outputs), signal) : null;
  const rows = split(spec, x.shape[0], classes);
  const { normalize } = spec.data;
  return { ...rows, normalization: ["none", "inherit"].includes(normalize) ? null : await fit(normalize, x, rows.train, valueCheck("x", spec, labels, outputs), signal) };
}
