// safetensors: named tensors and string metadata in one file, written so that equal contents are equal bytes.
import { EngineError, shown } from "../errors.js";
import { size } from "../nn/graph.js";

/** Those of float64 come as they are; all that a model trains is float32. @typedef {{shape: number[], data: Float32Array}} Tensor */

/**
 * @param {Record<string, {shape: number[], data: Float32Array|Float64Array}>} tensors in this order; those of float64 first, so that each starts on a multiple of its size
 * @param {Record<string, string>} [metadata]
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function encode(tensors, metadata) {
  /** @type {Record<string, unknown>} */
  const header = metadata ? { __metadata__: metadata } : {};
  let total = 0;
  for (const [name, { shape, data }] of Object.entries(tensors)) {
    header[name] = { dtype: data instanceof Float64Array ? "F64" : "F32", shape, data_offsets: [total, total + data.byteLength] };
    total += data.byteLength;
  }
  const start = beginningOf(header);
  const out = new Uint8Array(start.length + total);
  out.set(start);
  let at = start.length;
  for (const { data } of Object.values(tensors)) {
    out.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return out;
}

/** The length of the header and the header, padded with spaces so that the data starts on 8 bytes, as the format's own writer does.
 * @param {object} header */
function beginningOf(header) {
  const json = new TextEncoder().encode(JSON.stringify(header));
  const length = Math.ceil(json.length / 8) * 8;
  const out = new Uint8Array(8 + length).fill(0x20);
  new DataView(out.buffer).setBigUint64(0, BigInt(length), true);
  out.set(json, 8);
  return out;
}

/** All of a file of one float32 tensor but its values, which may come piece by piece. @param {string} name @param {number[]} shape */
export const headerOf = (name, shape) => beginningOf({ [name]: { dtype: "F32", shape, data_offsets: [0, 4 * size(shape)] } });

/**
 * How many values of a file that `encode` made are NaN or infinite; read where they stand.
 * @param {Uint8Array<ArrayBuffer>} bytes @returns {{values: number, nonFinite: number}}
 */
export function countNonFinite(bytes) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  let [values, nonFinite] = [0, 0];
  for (const [name, { dtype, data_offsets: [from, to] }] of Object.entries(JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length))))) {
    if (name === "__metadata__") continue;
    const Values = dtype === "F64" ? Float64Array : Float32Array;
    const tensor = new Values(bytes.buffer, bytes.byteOffset + 8 + length + from, (to - from) / Values.BYTES_PER_ELEMENT);
    values += tensor.length;
    for (const value of tensor) if (!Number.isFinite(value)) nonFinite++;
  }
  return { values, nonFinite };
}

/** @param {string} why @param {string} [field] */
function noFile(why, field) {
  const message = `${field ? `${field}: ` : ""}not a safetensors file of float32 or float64 tensors: ${why}`;
  return new EngineError("data_invalid", message, { field });
}

/** @param {unknown} bytes @param {string} [field] as what they are given @throws {EngineError} data_invalid */
export function checkBytes(bytes, field) {
  if (!(bytes instanceof Uint8Array)) throw noFile(`its bytes come as a Uint8Array, not as ${shown(bytes)}`, field);
}

/**
 * @param {Uint8Array} bytes @param {string} [field] what the bytes are, for the error
 * @returns {{tensors: Record<string, Tensor>, metadata: Record<string, string>}}
 */
export function decode(bytes, field) {
  const bad = (/** @type {string} */ why) => noFile(why, field);
  checkBytes(bytes, field);
  if (bytes.length < 8) throw bad("shorter than its header");
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  if (length > bytes.length - 8) throw bad("its header is longer than the file");
  /** @type {Record<string, any>} */
  let header;
  try {
    header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  } catch {
    throw bad("its header is not JSON");
  }
  const { __metadata__: metadata, ...entries } = header ?? {};
  /** @type {Record<string, Tensor>} */
  const tensors = {};
  let total = 0;
  for (const [name, entry] of Object.entries(entries)) {
    const { dtype, shape, data_offsets: offsets } = entry ?? {};
    const Values = /** @type {any} */ ({ F32: Float32Array, F64: Float64Array })[dtype];
    if (!Values || !areSizes(shape) || !areSizes(offsets)) throw bad(`${name} is ${shown(entry)}`);
    const [from, to] = offsets;
    if (to - from !== size(shape) * Values.BYTES_PER_ELEMENT || 8 + length + to > bytes.length) throw bad(`${name} is ${dtype} [${shape}] in ${to - from} bytes`);
    total += to - from;
    tensors[name] = { shape, data: new Values(bytes.slice(8 + length + from, 8 + length + to).buffer) };
  }
  const given = bytes.length - 8 - length;
  if (given !== total) throw bad(`it has ${given} bytes of tensors, its header says ${total}`);
  return { tensors, metadata: metadata ?? {} };
}

/** @param {unknown} values */
const areSizes = (values) => Array.isArray(values) && values.every((value) => Number.isInteger(value) && value >= 0);
