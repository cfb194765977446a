// Beginning: the weights that a run starts from: the seed's, or those of a file for the layers that are to be tuned.
import { EngineError } from "../errors.js";
import { decode } from "./safetensors.js";
import { seededWeights, tensorNames } from "./weights.js";

/** @import { Plan } from "../plan/plan.js" */
/** @import { Normalization } from "./normalization.js" */
/** @import { Weights } from "./weights.js" */

/** Tensors that say what the inputs go through; they are of no layer. */
const INPUT = ["input.offset", "input.scale"];

/** A file's tensors, or those in the caller's hands. @param {Weights|Uint8Array|undefined} given @returns {Weights|undefined} */
const opened = (given) => (given instanceof Uint8Array ? decode(given).tensors : given);

/**
 * The weights to begin with, or null for those of the seed. With `fine_tune` those of its layers are taken, of all that have some where it
 * names none, and the seed gives the rest; of a file else all that the model has; of tensors themselves exactly those.
 * @param {Plan} plan @param {any} spec @param {Weights|Uint8Array|undefined} given
 * @returns {Weights|null}
 */
export function beginning(plan, spec, given) {
  const tensors = opened(given);
  const { fine_tune: tune, train, data } = spec;
  if (!tensors) return null;
  if (!tune && !(given instanceof Uint8Array)) {
    const used = data.normalize === "inherit" ? INPUT : [];
    return Object.fromEntries(Object.entries(tensors).filter(([name]) => !used.includes(name)));
  }
  const layerOf = (/** @type {string} */ name) => name.split(".")[0];
  const there = new Set(Object.keys(tensors).map(layerOf));
  const names = tensorNames(plan, "");
  const wanted = new Set(tune ? (tune.layers ?? names.map(layerOf).filter((layer) => there.has(layer))) : names.map(layerOf));
  if (!names.some((name) => wanted.has(layerOf(name)))) {
    throw new EngineError("data_invalid", `weights: they have tensors of no layer to be tuned, but ${Object.keys(tensors).join(", ")}`, { field: "fine_tune" });
  }
  const weights = seededWeights(plan, train.seed);
  for (const name of names.filter((n) => wanted.has(layerOf(n)))) {
    if (!tensors[name]) throw new EngineError("data_invalid", `weights: ${name} is missing`, { field: name });
    weights[name] = { shape: tensors[name].shape, data: Float32Array.from(tensors[name].data) };
  }
  return weights;
}

/**
 * What the inputs of a trained model go through, as its weights say; null: nothing. Which rule gave it they do not say.
 * @param {any} spec @param {Weights|Uint8Array|undefined} given
 * @returns {Normalization|null}
 * @throws {EngineError} data_invalid where there are no weights, or offset and scale do not fit the inputs or each other
 */
export function normalizationOf(spec, given) {
  const tensors = opened(given);
  if (!tensors) {
    const field = spec.predict ? "predict" : "data.normalize";
    throw new EngineError("data_invalid", `initialWeights: ${field} needs the weights of a trained model`, { field: "initialWeights" });
  }
  const missing = INPUT.filter((name) => !tensors[name]);
  if (missing.length === INPUT.length) return null;
  if (missing.length > 0) throw new EngineError("data_invalid", `weights: ${missing[0]} is missing; needed: ${INPUT.join(" and ")}, or neither`, { field: missing[0] });
  const columns = spec.model.input.at(-1);
  const [offset, scale] = INPUT.map((name) => {
    const bad = (/** @type {string} */ why) => new EngineError("data_invalid", `weights: ${name} ${why}`, { field: name });
    const { shape, data } = tensors[name];
    if (shape?.join() !== String(columns) || data?.length !== columns) throw bad(`is [${shape}]; needed: [${columns}], the last axis of model.input`);
    const wrong = data.findIndex((/** @type {number} */ value) => !Number.isFinite(Math.fround(value)));
    if (wrong >= 0) throw bad(`is ${data[wrong]} at ${wrong}; legal: finite float32 numbers`);
    return Float64Array.from(data);
  });
  return { offset, scale };
}
