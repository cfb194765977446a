// The job spec in the page: checked against the one schema (spec_schema.js, made from texelgrad/spec.py), defaults filled in.
// Interprets the part of JSON Schema that pydantic writes; a keyword that it does not know is an error, not a pass.
import { EngineError } from "../errors.js";
import { specSchema } from "./spec_schema.js";

/** @typedef {{field: string, value: unknown, message: string}} Fault */
/** @typedef {Record<string, any>} Schema */

const IGNORED = new Set(["title", "description", "default", "$defs", "discriminator", "required", "additionalProperties", "patternProperties"]);

const isObject = (/** @type {unknown} */ v) => typeof v === "object" && v !== null && !Array.isArray(v);

/** @type {Record<string, (v: any) => boolean>} */
const types = {
  object: isObject,
  array: Array.isArray,
  string: (v) => typeof v === "string",
  integer: Number.isSafeInteger,
  number: Number.isFinite,
  boolean: (v) => typeof v === "boolean",
  null: (v) => v === null,
};

/** One keyword's test, and what to say where it fails. @type {Record<string, (value: any, limit: any) => string|null>} */
const keywords = {
  type: (v, type) => (types[type](v) ? null : `must be ${type === "object" || type === "array" || type === "integer" ? "an" : "a"} ${type}`.replace("a null", "null")),
  const: (v, wanted) => (v === wanted ? null : `must be ${JSON.stringify(wanted)}`),
  enum: (v, legal) => (legal.includes(v) ? null : `must be one of ${legal.map((/** @type {any} */ l) => JSON.stringify(l)).join(", ")}`),
  minimum: (v, limit) => (v >= limit ? null : `must be at least ${limit}`),
  maximum: (v, limit) => (v <= limit ? null : `must be at most ${limit}`),
  exclusiveMinimum: (v, limit) => (v > limit ? null : `must be above ${limit}`),
  exclusiveMaximum: (v, limit) => (v < limit ? null : `must be below ${limit}`),
  minLength: (v, limit) => (v.length >= limit ? null : `must have at least ${limit} characters`),
  maxLength: (v, limit) => (v.length <= limit ? null : `must have at most ${limit} characters`),
  minItems: (v, limit) => (v.length >= limit ? null : `must have at least ${limit} items`),
  maxItems: (v, limit) => (v.length <= limit ? null : `must have at most ${limit} items`),
  maxProperties: (v, limit) => (Object.keys(v).length <= limit ? null : `must have at most ${limit} fields`),
  pattern: (v, pattern) => (new RegExp(pattern, "u").test(v) ? null : `must match ${pattern}`),
};

/**
 * Checks a value and returns a copy with its defaults filled in.
 * @param {Schema} schema @param {any} value @param {string} field @param {Fault[]} faults
 * @returns {any}
 */
function check(schema, value, field, faults) {
  if (schema.$ref) return check(specSchema.$defs[/** @type {keyof typeof specSchema.$defs} */ (schema.$ref.split("/").pop())], value, field, faults);
  if (schema.anyOf) return checkAny(schema.anyOf, value, field, faults);
  if (schema.oneOf) return checkTagged(schema, value, field, faults);
  if (schema.type && !types[schema.type](value)) {
    faults.push({ field, value, message: /** @type {string} */ (keywords.type(value, schema.type)) });
    return value;
  }
  for (const [keyword, limit] of Object.entries(schema)) {
    if (IGNORED.has(keyword) || keyword === "properties" || keyword === "items") continue;
    if (!keywords[keyword]) throw new Error(`spec_schema.js uses ${keyword}, which spec.js does not know`);
    const message = keywords[keyword](value, limit);
    if (message) faults.push({ field, value, message });
  }
  if (Array.isArray(value) && schema.items) return value.map((item, i) => check(schema.items, item, `${field}.${i}`, faults));
  return isObject(value) ? checkFields(schema, value, field, faults) : value;
}

/** @param {Schema} schema @param {Record<string, any>} value @param {string} field @param {Fault[]} faults */
function checkFields(schema, value, field, faults) {
  const at = (/** @type {string} */ name) => (field ? `${field}.${name}` : name);
  const { properties = {}, patternProperties, required = [] } = schema;
  /** @type {Record<string, any>} */
  const out = {};
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(properties, name)) continue;
    const pattern = patternProperties && Object.entries(patternProperties).find(([p]) => new RegExp(p, "u").test(name));
    if (pattern) out[name] = check(/** @type {Schema} */ (pattern[1]), value[name], at(name), faults);
    else faults.push({ field: at(name), value: value[name], message: `is unknown; legal: ${Object.keys(properties).join(", ") || `names like ${Object.keys(patternProperties ?? {})}`}` });
  }
  for (const [name, property] of Object.entries(/** @type {Record<string, Schema>} */ (properties))) {
    if (value[name] !== undefined) out[name] = check(property, value[name], at(name), faults);
    else if (required.includes(name)) faults.push({ field: at(name), value: undefined, message: "is missing" });
    else if ("default" in property) out[name] = property.default;
    // Sections and lists that may be left out are filled in from their own defaults.
    else if (name === "schedule") out[name] = { type: "constant" };
    else out[name] = property.type === "array" ? [] : property.type === "object" ? {} : check(property, {}, at(name), faults);
  }
  return out;
}

/** @param {Schema[]} options @param {any} value @param {string} field @param {Fault[]} faults */
function checkAny(options, value, field, faults) {
  if (value === null && options.some((o) => o.type === "null")) return null;
  /** @type {Fault[]} */
  let first = [];
  for (const option of options.filter((o) => o.type !== "null")) {
    /** @type {Fault[]} */
    const found = [];
    const out = check(option, value, field, found);
    if (found.length === 0) return out;
    if (first.length === 0) first = found;
  }
  faults.push(...first);
  return value;
}

/** A choice by the field `type`. @param {Schema} schema @param {any} value @param {string} field @param {Fault[]} faults */
function checkTagged(schema, value, field, faults) {
  const { propertyName, mapping } = schema.discriminator;
  const ref = isObject(value) && Object.hasOwn(mapping, value[propertyName]) && mapping[value[propertyName]];
  if (ref) return check({ $ref: ref }, value, field, faults);
  const legal = Object.keys(mapping).join(", ");
  faults.push({ field: `${field}.${propertyName}`, value: value?.[propertyName], message: `must be one of ${legal}` });
  return value;
}

/**
 * @param {any} input a job spec as the user wrote it
 * @returns {any} a checked copy with all defaults filled in
 * @throws {EngineError} spec_invalid; `field` is the first fault's, `detail.faults` holds them all
 */
export function validateSpec(input) {
  /** @type {Fault[]} */
  const faults = [];
  if (!isObject(input)) throw new EngineError("spec_invalid", "the spec must be an object", { field: "" });
  const spec = check(specSchema, input, "", faults);
  if (faults.length === 0) betweenFields(spec, faults);
  if (faults.length > 0) {
    const message = faults.map(({ field, value, message: m }) => `${field}: ${m}${value === undefined ? "" : `, not ${JSON.stringify(value)}`}`).join("; ");
    throw new EngineError("spec_invalid", message, { field: faults[0].field, detail: { faults } });
  }
  return spec;
}

/** What no field shows alone. @param {any} spec @param {Fault[]} faults */
function betweenFields(spec, faults) {
  /** @type {Record<string, number>} */
  const seen = {};
  const names = new Set();
  spec.model.layers.forEach((/** @type {any} */ layer, /** @type {number} */ i) => {
    seen[layer.type] = (seen[layer.type] ?? 0) + 1;
    layer.name ??= `${layer.type}_${seen[layer.type]}`;
    if (names.has(layer.name)) faults.push({ field: `model.layers.${i}.name`, value: layer.name, message: "is the name of several layers" });
    names.add(layer.name);
    if ("init" in layer) layer.init ??= layer.activation === "relu" ? "he_uniform" : "glorot_uniform";
    if (layer.use_bias === false) faults.push({ field: `model.layers.${i}.use_bias`, value: false, message: "is not available yet; legal: true" });
  });
  const last = spec.model.layers.at(-1);
  if (last.type !== "dense") faults.push({ field: `model.layers.${spec.model.layers.length - 1}.type`, value: last.type, message: "the last layer gives the output; legal: dense" });
  else if (spec.loss !== "mse" && last.activation !== "linear") {
    faults.push({ field: `model.layers.${spec.model.layers.length - 1}.activation`, value: last.activation, message: `${spec.loss} takes logits; legal: linear` });
  }
  if ((spec.train.epochs === null) === (spec.train.steps === null)) {
    faults.push({ field: "train", value: undefined, message: "needs exactly one of epochs and steps" });
  }
  if (spec.loss === "mse" && spec.metrics.includes("accuracy")) faults.push({ field: "metrics.0", value: "accuracy", message: "needs a loss over classes" });
  if (spec.data.normalize !== "none") faults.push({ field: "data.normalize", value: spec.data.normalize, message: "is not available yet; legal: none" });
  if (spec.backend === "cpu") faults.push({ field: "backend", value: "cpu", message: "is not available yet; legal: auto, webgl2" });
}
