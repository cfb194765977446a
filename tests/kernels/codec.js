// codec.js: values between Python and the test page, exact for every float. Not part of the engine.
//
// JSON has no typed arrays and no NaN, infinities or negative zero, so these travel in envelopes:
//   {"$array": base64 of little-endian bytes, "dtype": "float32", "shape": [2, 3]}
//   {"$number": "NaN" | "Infinity" | "-Infinity" | "-0"}
// A Python array arrives here as {shape, data}; a typed array, or an object of exactly {shape, data}, leaves as an array.

/** @typedef {Float32Array | Float64Array | Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array} TypedArray */

/** @type {Record<string, { new (buffer: ArrayBuffer): TypedArray }>} */
const CONSTRUCTORS = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, uint8: Uint8Array,
  int16: Int16Array, uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array,
};

const CHUNK_BYTES = 0x8000; // String.fromCharCode takes its bytes as arguments, which overflow the stack beyond about 1e5

/**
 * @param {TypedArray} data
 * @param {number[]} [shape] defaults to one dimension
 * @returns {{$array: string, dtype: string, shape: number[]}}
 */
export function encodeArray(data, shape = [data.length]) {
  const dtype = Object.keys(CONSTRUCTORS).find((name) => data instanceof CONSTRUCTORS[name]);
  if (dtype === undefined) throw new TypeError(`no dtype for ${Object.prototype.toString.call(data)}`);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const parts = [];
  for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
    parts.push(String.fromCharCode(...bytes.subarray(start, start + CHUNK_BYTES)));
  }
  return { $array: btoa(parts.join("")), dtype, shape };
}

/**
 * @param {{$array: string, dtype: string, shape: number[]}} envelope
 * @returns {{shape: number[], data: TypedArray}}
 */
export function decodeArray(envelope) {
  const Constructor = CONSTRUCTORS[envelope.dtype];
  if (Constructor === undefined) throw new TypeError(`unknown dtype ${envelope.dtype}`);
  const bytes = Uint8Array.from(atob(envelope.$array), (character) => character.charCodeAt(0));
  return { shape: envelope.shape, data: new Constructor(bytes.buffer) };
}

/** @param {any} value @returns {any} the same value with envelopes, fit for JSON.stringify */
export function encode(value) {
  if (value === undefined) return null;
  if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))) {
    return { $number: Object.is(value, -0) ? "-0" : String(value) };
  }
  if (value === null || typeof value !== "object") return value;
  if (ArrayBuffer.isView(value)) return encodeArray(/** @type {any} */ (value));
  if (value instanceof ArrayBuffer) return encodeArray(new Uint8Array(value));
  if (Array.isArray(value)) return value.map(encode);
  if (value instanceof Map) return encode(Object.fromEntries(value));
  if (Object.keys(value).sort().join() === "data,shape" && ArrayBuffer.isView(value.data)) {
    return encodeArray(value.data, value.shape);
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, encode(item)]));
}

/** @param {any} value as JSON.parse gave it @returns {any} */
export function decode(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(decode);
  if ("$number" in value) return Number(value.$number);
  if ("$array" in value) return decodeArray(value);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, decode(item)]));
}
