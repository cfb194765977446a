// Beginning: the weights that a run starts from: the seed's, or those of a file for the layers that are to be tuned.
import { EngineError } from "../errors.js";
import { decode } from "./safetensors.js";
import { seededWeights, tensorNames } from "./weights.js";

/** @import { Plan } from "../plan/plan.js" */
/** @import { Normalization } from "./normalization.js" */
/** @import { Weights } from "./weights.js" */

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
  const { fine_tune: tune, train } = spec;
  if (!tensors) return null;
  if (!tune && !(given instanceof Uint8Array)) return tensors;
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
    const { shape, data } = tensors[name];
    weights[name] = { shape, data: Float32Array.from(data) };
  }
  return weights;
}

/** What the inputs of a trained model go through, as its file says. @param {Weights|Uint8Array|undefined} given @returns {Normalization|null} */
export function normalizationOf(given) {
  const tensors = opened(given);
  const [offset, scale] = [tensors?.["input.offset"], tensors?.["input.scale"]];
  return offset && scale ? { kind: "standard", offset: Float64Array.from(offset.data), scale: Float64Array.from(scale.data) } : null;
}
