// Options: what a page passes besides specs, data and weights. All of it is checked here, before anything begins: a misspelt option would otherwise
// be as good as none, and one of another type an error of JavaScript's.
import { EngineError, isObject, shown } from "../errors.js";

/** What an option may be, and how messages say it. @typedef {{is: (value: any) => boolean, legal: string}} Rule */
/** Rules by name; a map of rules is an option that has such options itself. @typedef {{[name: string]: Rule|Rules}} Rules */

const oneOf = (/** @type {unknown[]} */ ...values) => ({ is: (/** @type {unknown} */ value) => values.includes(value), legal: values.join(", ") });
const isFunction = (/** @type {unknown} */ value) => typeof value === "function";

/** Checked with the data, or with the weights, where it is known what they must hold. @type {Rule} */
const elsewhere = { is: () => true, legal: "" };
/** @type {Rule} */
const address = { is: (value) => (typeof value === "string" && value !== "") || value instanceof URL, legal: "an address, as a string or a URL" };
/** Also one of another frame's. @type {Rule} */
const signal = { is: (value) => typeof value?.aborted === "boolean" && isFunction(value.addEventListener), legal: "an AbortSignal" };
/** @type {Rule} */
const bytes = { is: (value) => Number.isFinite(value) && value >= 0, legal: "a number of bytes" };
/** @type {Rule} */
const callback = { is: isFunction, legal: "a function, which gets points of the curve" };
/** @type {Rule} */
const steps = { is: (value) => value === Infinity || (Number.isSafeInteger(value) && value > 0), legal: "a positive number of whole steps" };
/** @type {Rule} */
export const LEVEL = oneOf("basic", "full");

const ENGINE = {
  shaderUrl: address,
  thread: oneOf("auto", "worker", "inline"),
  device: {
    format: oneOf("rgba32f", "rgba32ui"),
    fetch: oneOf("texture", "texelFetch"),
    maxDrawBuffers: oneOf(1, 2, 3, 4, 5, 6, 7, 8),
    convolution: oneOf("direct", "im2col"),
    residentBytes: bytes,
    rows: { is: isObject, legal: "an object, see fragment_rows.js" },
  },
};
const SESSION = { ...ENGINE, backend: oneOf("auto", "webgl2"), initialWeights: elsewhere, allowSoftware: { is: (/** @type {unknown} */ value) => typeof value === "boolean", legal: "true, false" }, signal };

/** What each call takes. */
export const OPTIONS = {
  preload: { shaderUrl: ENGINE.shaderUrl, thread: ENGINE.thread },
  probe: ENGINE,
  compile: { data: elsewhere, ...SESSION },
  train: { ...SESSION, onTelemetry: callback },
  diagnose: { data: elsewhere, ...SESSION, level: LEVEL },
  run: { steps, onTelemetry: callback, signal },
};

/**
 * @param {unknown} given @param {Rules} rules @param {string} [field] what the caller calls them
 * @throws {EngineError} spec_invalid where one is unknown or not legal; what is undefined is left out
 */
export function checkOptions(given, rules, field = "options") {
  const names = Object.keys(rules).join(", ");
  if (!isObject(given)) throw bad(field, `${shown(given)} is not legal; legal: an object with any of ${names}`);
  for (const [name, value] of Object.entries(/** @type {object} */ (given))) {
    const at = `${field}.${name}`;
    if (!Object.hasOwn(rules, name)) throw bad(at, `is unknown; legal: ${names}`);
    const rule = rules[name];
    if (value === undefined) continue;
    if (isRule(rule)) checkOption(value, rule, at);
    else checkOptions(value, rule, at);
  }
}

/** One that stands by itself. @param {unknown} value @param {Rule} rule @param {string} field @throws {EngineError} spec_invalid */
export function checkOption(value, { is, legal }, field) {
  if (!is(value)) throw bad(field, `${shown(value)} is not legal; legal: ${legal}`);
}

/** @param {Rule|Rules} rule @returns {rule is Rule} */
const isRule = (rule) => isFunction(rule.is);

const bad = (/** @type {string} */ field, /** @type {string} */ message) => new EngineError("spec_invalid", `${field}: ${message}`, { field });
