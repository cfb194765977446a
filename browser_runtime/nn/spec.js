// The job spec in the page: checked against the one schema (spec_schema.js, made from texelgrad/spec.py), defaults filled in.
// Interprets the part of JSON Schema that pydantic writes; a keyword that it does not know is an error, not a pass.
import { EngineError, isObject, plain, shown } from "../errors.js";
import { RELU_LIKE } from "./activations.js";
import { size } from "./graph.js";
import { MAX_ORTHOGONAL } from "./initializers.js";
import { arrayOf, shapesOf } from "./inputs.js";
import { losses, lossOf, lossType } from "./losses.js";
import { buildModel } from "./model.js";
import { measureFaults, outputFaults } from "./spec_measures.js";
import { patternWords, specSchema } from "./spec_schema.js";
import { weightsFaults } from "./spec_weights.js";

/** @typedef {{field: string, value: unknown, message: string}} Fault */
/** @typedef {Record<string, any>} Schema */

/** Layers of a model at most, as many as the service takes by default. */
const MAX_LAYERS = 256;

const IGNORED = new Set(["title", "description", "default", "$defs", "discriminator", "required", "additionalProperties", "patternProperties"]);

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

/** What a pattern asks for. @param {string} pattern */
const inWords = (pattern) => patternWords[/** @type {keyof typeof patternWords} */ (pattern)] ?? "of another form";

/** One keyword's test, and what to say where it fails. @type {Record<string, (value: any, limit: any) => string|null>} */
const keywords = {
  type: (v, type) => (types[type](v) ? null : `must be ${type === "object" || type === "array" || type === "integer" ? "an" : "a"} ${type}`.replace("a null", "null")),
  const: (v, wanted) => (v === wanted ? null : `must be ${JSON.stringify(wanted)}`),
  enum: (v, legal) => (legal.includes(v) ? null : `must be one of ${legal.map((/** @type {any} */ l) => JSON.stringify(l)).join(", ")}`),
  minimum: (v, limit) => (v >= limit ? null : `must be at least ${limit}`),
  maximum: (v, limit) => (v <= limit ? null : `must be at most ${limit}`),
  exclusiveMinimum: (v, limit) => (v > limit ? null : `must be above ${limit}`),
  exclusiveMaximum: (v, limit) => (v < limit ? null : `must be below ${limit}`),
  // Characters are counted as Python counts them: an emoji is one.
  minLength: (v, limit) => ([...v].length >= limit ? null : `must have at least ${limit} characters`),
  maxLength: (v, limit) => ([...v].length <= limit ? null : `must have at most ${limit} characters`),
  minItems: (v, limit) => (v.length >= limit ? null : `must have at least ${limit} items`),
  maxItems: (v, limit) => (v.length <= limit ? null : `must have at most ${limit} items`),
  minProperties: (v, limit) => (Object.keys(v).length >= limit ? null : `must have at least ${limit} fields`),
  maxProperties: (v, limit) => (Object.keys(v).length <= limit ? null : `must have at most ${limit} fields`),
  pattern: (v, pattern) => (new RegExp(pattern, "u").test(v) ? null : `must be ${inWords(pattern)}`),
};

/** What a reference stands for. @param {Schema} schema @returns {Schema} */
const resolved = (schema) => (schema.$ref ? specSchema.$defs[/** @type {keyof typeof specSchema.$defs} */ (schema.$ref.split("/").pop())] : schema);

/**
 * Checks a value and returns a copy with its defaults filled in.
 * @param {Schema} schema @param {any} value @param {string} field @param {Fault[]} faults
 * @returns {any}
 */
function check(schema, value, field, faults) {
  if (schema.$ref) return check(resolved(schema), value, field, faults);
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
    else faults.push({ field: at(name), value: value[name], message: `is unknown; legal: ${Object.keys(properties).join(", ") || Object.keys(patternProperties ?? {}).map(inWords).join(", ")}` });
  }
  for (const [name, property] of Object.entries(/** @type {Record<string, Schema>} */ (properties))) {
    // Null, where it is legal, stands for the default.
    if (value[name] !== undefined) out[name] = check(property, value[name], at(name), faults) ?? property.default ?? null;
    else if (required.includes(name)) faults.push({ field: at(name), value: undefined, message: "is missing" });
    else if ("default" in property) out[name] = check(property, property.default, at(name), faults);
    // Sections and lists that may be left out are filled in from their own defaults.
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
    // Of several kinds, the fault of the value's own kind is told: a number out of range, not that it is no array.
    const { type, oneOf } = resolved(option);
    if (first.length === 0 || (oneOf ? isObject(value) : types[type]?.(value))) first = found;
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
 * @throws {EngineError} spec_invalid, as refuse() does
 */
export function validateSpec(input) {
  const { spec, faults } = checkSpec(input);
  refuse(faults);
  return spec;
}

/**
 * @param {any} input a job spec as the user wrote it
 * @returns {{spec: any, faults: Fault[]}} a copy with all defaults filled in, and what is wrong with it
 * @throws {EngineError} spec_invalid where it is no object
 */
export function checkSpec(input) {
  /** @type {Fault[]} */
  const faults = [];
  if (!isObject(input)) throw new EngineError("spec_invalid", `the spec must be an object, not ${shown(input)}`, { field: "" });
  const spec = check(specSchema, input, "", faults);
  if (faults.length === 0) betweenFields(spec, faults);
  if (faults.length === 0) betweenShapes(spec, faults);
  return { spec, faults };
}

/** @param {Fault[]} faults @throws {EngineError} spec_invalid where there are some; `field` is the first one's, `detail.faults` holds them all */
export function refuse(faults) {
  if (faults.length === 0) return;
  const message = faults.map(({ field, value, message: m }) => `${field}: ${m}${value === undefined ? "" : `, not ${shown(value)}`}`).join("; ");
  const detail = { faults: faults.map(({ value, ...fault }) => ({ ...fault, value: plain(value) })) };
  throw new EngineError("spec_invalid", message, { field: faults[0].field, detail });
}

/** What no field shows alone; the same as _between_fields of texelgrad/spec.py. @param {any} spec @param {Fault[]} faults */
function betweenFields(spec, faults) {
  const fault = (/** @type {string} */ field, /** @type {unknown} */ value, /** @type {string} */ message) => faults.push({ field, value, message });
  nameLayers(spec.model.layers);
  layerFaults(spec, fault);
  const { train, data, optimizer } = spec;
  if ((train.epochs === null) === (train.steps === null)) fault("train", undefined, "needs exactly one of epochs and steps");
  if (data.dataset !== null && data.synthetic !== null) fault("data", undefined, "takes one of dataset and synthetic");
  splitFaults(spec, fault);
  const { lr, schedule } = optimizer;
  if (schedule.min_lr > lr) fault("optimizer.schedule.min_lr", schedule.min_lr, `is above lr; legal: 0 to ${lr}`);
  if (optimizer.nesterov && optimizer.momentum === 0) fault("optimizer.nesterov", true, "needs a momentum; legal: false, or a momentum above 0");
  if (train.clip && (train.clip.value === null) === (train.clip.global_norm === null)) fault("train.clip", undefined, "needs one of value and global_norm");
  measureFaults(spec, fault);
  weightsFaults(spec, fault);
  if (spec.backend === "cpu") fault("backend", "cpu", "is not available yet; legal: auto, webgl2");
}

/** The same as split_faults of texelgrad/spec_data.py. @param {any} spec @param {(field: string, value: unknown, message: string) => void} fault */
function splitFaults(spec, fault) {
  const { data } = spec;
  const { fraction, stratify, rows } = data.validation;
  if (rows !== null && fraction > 0) fault("data.validation", undefined, "takes one of fraction and rows");
  if (stratify && fraction === 0) fault("data.validation.stratify", true, "needs a fraction to share among the classes; legal: false, or a fraction above 0");
  const type = lossType(spec);
  if (stratify && losses[type].of === "values") fault("data.validation.stratify", true, `needs a loss over classes; legal: false with ${type}`);
  const ranges = (rows ?? []).map((/** @type {any} */ item, /** @type {number} */ i) => [...(typeof item === "number" ? [item, item + 1] : item), i]);
  let last = -1;
  for (const [first, stop, i] of ranges.sort((/** @type {number[]} */ a, /** @type {number[]} */ b) => a[0] - b[0] || a[1] - b[1])) {
    if (first >= stop) fault(`data.validation.rows.${i}`, [first, stop], "is an empty range; legal: [first, stop] with first below stop");
    else if (first <= last) fault(`data.validation.rows.${i}`, first, `names row ${first} again; legal: each row once`);
    last = Math.max(last, stop - 1);
  }
}

/** Defaults that depend on the layers before or on other fields. @param {any[]} layers */
function nameLayers(layers) {
  /** @type {Record<string, number>} */
  const seen = {};
  for (const layer of layers) {
    seen[layer.type] = (seen[layer.type] ?? 0) + 1;
    layer.name ??= `${layer.type}_${seen[layer.type]}`;
    // One number stands for both directions, where there are two.
    const pairs = layer.type.endsWith("1d") ? [] : ["kernel", "stride", "dilation", "size"];
    for (const pair of pairs) if (typeof layer[pair] === "number") layer[pair] = [layer[pair], layer[pair]];
    if (/^(max|avg)_pool[12]d$/.test(layer.type)) layer.stride ??= layer.size;
    // And for all four sides.
    for (const sides of ["padding", "cropping"]) {
      if (typeof layer[sides] === "number") layer[sides] = [[layer[sides], layer[sides]], [layer[sides], layer[sides]]];
    }
    // Xavier and Glorot are one man, Xavier Glorot; one name in plans and records.
    if ("init" in layer) layer.init ??= RELU_LIKE.includes(layer.activation) ? "he_uniform" : "glorot_uniform";
    if (typeof layer.init === "string") layer.init = layer.init.replace("xavier", "glorot");
  }
}

/** Whether each layer fits what the one before gives it. @param {any} spec @param {Fault[]} faults */
function betweenShapes(spec, faults) {
  try {
    const { graph, lookups, output, outputShape, parameters } = buildModel(spec, { training: true });
    const fault = (/** @type {string} */ field, /** @type {unknown} */ value, /** @type {string} */ message) => faults.push({ field, value, message });
    const { normalize } = spec.data;
    if (normalize !== "none" && Object.keys(shapesOf(spec.model.input)).every((name) => lookups.has(arrayOf(name)))) {
      fault("data.normalize", normalize, "would change the numbers that embedding looks up; legal: none");
    }
    initFaults(spec, parameters, fault);
    lossFaults(spec, graph.tensor(output).shape, fault);
    outputFaults(spec, size(outputShape), fault);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    faults.push({ field: error.field ?? "model", value: undefined, message: error.message });
  }
}

/** @param {any} spec @param {(field: string, value: unknown, message: string) => void} fault */
function layerFaults(spec, fault) {
  const { layers } = spec.model;
  if (layers.length > MAX_LAYERS) fault("model.layers", layers.length, `has too many layers; legal: at most ${MAX_LAYERS} layers`);
  /** How many have each name. @type {Map<string, number>} */
  const names = new Map();
  for (const { name } of layers) names.set(name, (names.get(name) ?? 0) + 1);
  layers.forEach((/** @type {any} */ { name }, /** @type {number} */ i) => {
    if (names.get(name) !== 1) fault(`model.layers.${i}.name`, name, "is the name of several layers");
  });
  const { activation = "linear" } = layers.at(-1);
  const type = lossType(spec);
  if (losses[type].logits && activation !== "linear") fault(`model.layers.${layers.length - 1}.activation`, activation, `${type} takes logits; legal: linear`);
}

/**
 * What would take too long to make orthogonal.
 * @param {any} spec @param {import("./model.js").Parameter[]} parameters @param {(field: string, value: unknown, message: string) => void} fault
 */
function initFaults(spec, parameters, fault) {
  for (const { layer, init, shape } of parameters) {
    const [values, columns] = [size(shape), /** @type {number} */ (shape.at(-1))];
    if (init !== "orthogonal" || values * Math.min(columns, values / columns) <= MAX_ORTHOGONAL) continue;
    const index = spec.model.layers.findIndex((/** @type {any} */ { name }) => name === layer);
    fault(`model.layers.${index}.init`, init, `takes too long for ${values / columns} x ${columns} weights; legal: another, or rows * columns * the smaller of them up to ${MAX_ORTHOGONAL}`);
  }
}

/**
 * Whether the loss suits what the last layer gives; the same as loss_faults of texelgrad/losses.py.
 * @param {any} spec @param {number[]} shape of the outputs @param {(field: string, value: unknown, message: string) => void} fault
 */
function lossFaults(spec, shape, fault) {
  const [field, outputs, loss] = [`model.layers.${spec.model.layers.length - 1}`, size(shape), lossOf(spec)];
  if (loss.type === "softmax_cross_entropy") {
    if (shape.length !== 1) return fault(field, shape, "softmax_cross_entropy takes a row of logits; legal: a dense layer, or another loss");
    if (outputs < 2) fault(`${field}.units`, outputs, "softmax over one class is always 1; legal: at least 2, or loss bce");
  }
  for (const name of ["class_weights", "pos_weight"]) {
    if (Array.isArray(loss[name]) && loss[name].length !== outputs) fault(`loss.${name}`, undefined, `has ${loss[name].length} numbers; legal: ${outputs}, one for each output`);
  }
}
