// The engine's one error type, and how its messages show values. A leaf: every layer may import it, it imports nothing.

/**
 * @typedef {"spec_invalid"|"data_invalid"|"too_large"|"no_webgl2"|"no_float_targets"|"software_refused"|"context_lost"|
 *   "gl_error"|"shader_error"|"non_finite_loss"|"aborted"|"busy"|"disposed"|"internal"} ErrorCode
 */

/** An error with a stable code; `field` names the offending part of the spec or the data, `detail` is plain JSON. */
export class EngineError extends Error {
  /**
   * @param {ErrorCode} code
   * @param {string} message
   * @param {{field?: string|null, detail?: Record<string, unknown>, cause?: unknown}} [more]
   */
  constructor(code, message, { field = null, detail = {}, cause } = {}) {
    super(message, { cause });
    this.name = "EngineError";
    this.code = code;
    this.field = field;
    this.detail = detail;
  }
}

const LONG = 16; // values of an array that a message shows
const LONGEST = 200; // characters of a message's value

/** A value as it stands in a message. Not every value has JSON, and that of an array of rows would be the whole of it. @param {unknown} value @returns {string} */
export function shown(value) {
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  if (typeof value === "string") return cut(JSON.stringify(value));
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value) && value.length > LONG) return `${value.length} values`;
  if (!Array.isArray(value) && !isObject(value)) return kindOf(value);
  try {
    return cut(inJson(value));
  } catch {
    return kindOf(value); // it holds itself
  }
}

/** A value as plain JSON: where JSON has none, or null as for NaN, the text that messages show. @param {unknown} value @returns {unknown} */
export function plain(value) {
  if (value === undefined) return undefined; // nothing was given
  try {
    return JSON.parse(inJson(value));
  } catch {
    return shown(value);
  }
}

/** @param {unknown} value @returns {string} @throws {TypeError} where it holds itself */
const inJson = (value) => JSON.stringify(value, (_, part) => (isBare(part) ? part : shown(part)));

/** Whether it is an object of fields: neither an array nor a map, promise, typed array or the like. @param {any} value @returns {boolean} */
export const isObject = (value) => Object.prototype.toString.call(value) === "[object Object]";

/** Whether JSON shows it as it is. @param {any} part */
const isBare = (part) => part === null || typeof part === "boolean" || typeof part === "string" || Number.isFinite(part) || isObject(part) || (Array.isArray(part) && part.length <= LONG);

/** What an object says that it is: Uint8Array, Promise. @param {object} value */
const kindOf = (value) => value.constructor?.name ?? "an object";

/** @param {string} text */
const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}...` : text);
