// The inputs of a model by name. One shape alone is a model of one input, `input`, whose array is `x`. texelgrad/inputs.py says the same.
// Wherever `model.input` is a map, what belongs to an input is in a map of the same names: its data, and what normalizes it.
import { EngineError } from "../errors.js";

/** `model.input` of a spec: the shape of one row, or such shapes by name. @typedef {number[]|Record<string, number[]>} ModelInput */

const isMap = (/** @type {any} */ value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** What layers call the input of a model that has one without a name. */
const INPUT = "input";
/** What no layer may be called: the input without a name, and tensors that every graph has. */
export const RESERVED = [INPUT, "x", "target", "loss", "correct"];
/** What an input may not be called: a data set's targets and weights of rows are besides. */
const NO_INPUTS = [...RESERVED, "y", "w"];

/** The tensor of what each row counts for; no layer can be called so. */
export const ROW_WEIGHT = "row.weight";

/**
 * What a caller gave for the inputs, by name. @template T
 * @param {ModelInput} input @param {T|Record<string, T>} given @returns {Record<string, T>}
 */
export const named = (input, given) => (isMap(input) ? /** @type {Record<string, T>} */ (given ?? {}) : { [INPUT]: /** @type {T} */ (given) });

/**
 * The other way: as a caller sees it. @template T
 * @param {ModelInput} input @param {Record<string, T>} byName @returns {T|Record<string, T>}
 */
export const unnamed = (input, byName) => (isMap(input) ? byName : byName[INPUT]);

/**
 * What a caller gave for each input made into something else, in the form in which it was given; nothing is checked yet.
 * @param {ModelInput} input @param {any} given @param {(one: any, name: string) => any} make @returns {any}
 */
export const eachInput = (input, given, make) => (isMap(input) && !isMap(given) ? given : unnamed(input, mapValues(named(input, given), make)));

/** @template T, U @param {Record<string, T>} byName @param {(value: T, name: string) => U} make @returns {Record<string, U>} */
export const mapValues = (byName, make) => Object.fromEntries(Object.entries(byName).map(([name, value]) => [name, make(value, name)]));

/** Shape of one row of each input, in the order of the spec. @param {ModelInput} input @returns {Record<string, number[]>} */
export const shapesOf = (input) => named(input, /** @type {any} */ (input));

/** The tensor of an input, and its array in data sets. @param {string} name */
export const arrayOf = (name) => (name === INPUT ? "x" : name);

/** Where an input stands in the spec. @param {string} name */
export const fieldOf = (name) => (name === INPUT ? "model.input" : `model.input.${name}`);

/** Where a caller gives an input's data. @param {string} name @param {string} [of] all of them */
export const dataField = (name, of = "data.x") => (name === INPUT ? of : `${of}.${name}`);

/** @param {ModelInput} input @throws {EngineError} spec_invalid where an input has the name of something else */
export function checkNames(input) {
  if (!isMap(input)) return;
  const bad = Object.keys(input).find((name) => NO_INPUTS.includes(name));
  if (bad) throw new EngineError("spec_invalid", `${bad} is the name of something else; reserved: ${NO_INPUTS.join(", ")}`, { field: fieldOf(bad) });
}
