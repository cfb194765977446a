// Beginning: the weights that a run starts from: the seed's, or those of a file for the layers that are to be tuned.
import { EngineError } from "../errors.js";
import { arrayOf, fieldOf, shapesOf } from "../nn/inputs.js";
import { tensorNamesOf } from "./normalization.js";
import { decode } from "./safetensors.js";
import { checkFinite, seededWeights, tensorNames } from "./weights.js";

/** @import { Plan } from "../plan/plan.js" */
/** @import { Normalization, Normalizations } from "./normalization.js" */
/** @import { Weights } from "./weights.js" */

/** A file's tensors, or those in the caller's hands. @param {Weights|Uint8Array|undefined} given @returns {Weights|undefined} */
const opened = (given) => (given instanceof Uint8Array || given instanceof ArrayBuffer ? decode(/** @type {Uint8Array} */ (given), "initialWeights").tensors : given);

/**
 * The weights to begin with, or null for those of the seed. With `fine_tune` those of its layers are taken, of all that have some where it
 * names none, and the seed gives the rest; of a file else all that the model has; of tensors themselves exactly those.
 * @param {Plan} plan @param {any} spec @param {Weights|Uint8Array|undefined} given
 * @returns {Weights|null}
 * @throws {EngineError} data_invalid where some are missing, or can't be trained from; what those of a diverged run predict may be asked
 */
export function beginning(plan, spec, given) {
  const tensors = opened(given);
  const { fine_tune: tune, model, train, data } = spec;
  if (!tensors) return null;
  if (!tune && !(given instanceof Uint8Array)) {
    const used = data.normalize === "inherit" ? Object.keys(shapesOf(model.input)).flatMap(tensorNamesOf) : [];
    const weights = Object.fromEntries(Object.entries(tensors).filter(([name]) => !used.includes(name)));
    if (!spec.predict) checkFinite(weights);
    return weights;
  }
  const layerOf = (/** @type {string} */ name) => name.split(".")[0];
  const names = tensorNames(plan, "");
  const wanted = new Set(tune ? (tune.layers ?? names.filter((name) => tensors[name]).map(layerOf)) : names.map(layerOf));
  if (!names.some((name) => wanted.has(layerOf(name)))) {
    throw new EngineError("data_invalid", `weights: they have tensors of no layer to be tuned, but ${Object.keys(tensors).join(", ")}`, { field: "fine_tune" });
  }
  /** @type {Weights} */
  const taken = {};
  for (const name of names.filter((n) => wanted.has(layerOf(n)))) {
    if (!tensors[name]) throw new EngineError("data_invalid", `weights: ${name} is missing`, { field: name });
    taken[name] = { shape: tensors[name].shape, data: Float32Array.from(tensors[name].data) };
  }
  if (!spec.predict) checkFinite(taken);
  return { ...seededWeights(plan, train.seed), ...taken };
}

/**
 * What each input of a trained model goes through, as its weights say; which rule gave it they do not say.
 * @param {any} spec @param {Plan} plan @param {Weights|Uint8Array|undefined} given
 * @returns {Normalizations}
 * @throws {EngineError} data_invalid where there are no weights, those of some inputs or of half an input are missing, or of all that are to be
 *   inherited, or they do not fit
 */
export function normalizationsOf(spec, { lookups }, given) {
  const tensors = opened(given);
  if (!tensors) {
    const field = spec.predict ? "predict" : "data.normalize";
    throw new EngineError("data_invalid", `initialWeights: ${field} needs the weights of a trained model`, { field: "initialWeights" });
  }
  const inputs = Object.entries(shapesOf(spec.model.input)).filter(([name]) => !lookups.has(arrayOf(name)));
  const needed = inputs.flatMap(([name]) => tensorNamesOf(name));
  const missing = needed.filter((name) => !tensors[name]);
  if (missing.length === needed.length) {
    if (needed.length > 0 && !mayHaveNone(spec, given)) throw withoutNormalization(inputs);
    return {};
  }
  if (missing.length > 0) throw new EngineError("data_invalid", `weights: ${missing[0]} is missing; needed: ${needed.join(" and ")}, or none of them`, { field: missing[0] });
  return Object.fromEntries(inputs.map(([name, shape]) => [name, normalizationOf(tensors, name, shape)]));
}

/**
 * Whether weights without any normalization were made without one, as by the service: what predicts takes what they say, and a job's file
 * is whole. Of other files nobody knows what made them, and tensors in the caller's hands may be those of a model that normalizes.
 * @param {any} spec @param {Weights|Uint8Array|undefined} given
 */
const mayHaveNone = ({ predict, fine_tune: tune }, given) => Boolean(predict || (tune?.job && given instanceof Uint8Array));

/** @param {[string, number[]][]} inputs names and shapes of those that are not looked up */
function withoutNormalization(inputs) {
  const all = inputs.flatMap(([name, shape]) => tensorNamesOf(name).map((tensor) => `${tensor} [${shape.at(-1)}]`)).join(", ");
  const message = `data.normalize: inherit, but the weights have no ${all}; weightsFile() of a session that normalizes has them, getWeights() has not; legal: weights with them, or none, standard or minmax`;
  return new EngineError("data_invalid", message, { field: "data.normalize" });
}

/** @param {Weights} tensors @param {string} input its name @param {number[]} sample its shape @returns {Normalization} */
function normalizationOf(tensors, input, sample) {
  const columns = sample.at(-1);
  const [offset, scale] = tensorNamesOf(input).map((name) => {
    const bad = (/** @type {string} */ why) => new EngineError("data_invalid", `weights: ${name} ${why}`, { field: name });
    const { shape, data } = tensors[name];
    if (shape?.join() !== String(columns) || data?.length !== columns) throw bad(`is [${shape}]; needed: [${columns}], the last axis of ${fieldOf(input)}`);
    const wrong = data.findIndex((/** @type {number} */ value) => !Number.isFinite(value));
    if (wrong >= 0) throw bad(`is ${data[wrong]} at ${wrong}; legal: finite numbers`);
    return Float64Array.from(data);
  });
  return { offset, scale };
}
