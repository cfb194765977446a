// Sources: arrays of rows in memory, behind a callback or at an address, read window by window so that a large one never stands in memory.
import { EngineError, shown } from "../errors.js";
import { size } from "../nn/graph.js";

/** What all of them have; rows come first in `shape`. `field` is where the caller gave it, as the engine's thread is told. @typedef {{shape: number[], dtype?: "float32"|"int32", field?: string}} Described */
/** An array in memory. @typedef {Described & {data: ArrayLike<number>}} ArrayInMemory */
/** One that is read piece by piece: `read(start, count)` gives `count` rows from `start`; `signal` says that nobody waits for them any more.
 * @typedef {Described & {read: (start: number, count: number, signal?: AbortSignal) => ArrayLike<number>|Promise<ArrayLike<number>>}} ArrayReader */
/** Little-endian values in C order at an address that honours Range; float32 where no dtype is named. @typedef {Described & {url: string|URL}} ArrayAtUrl */
/** @typedef {ArrayInMemory | ArrayReader | ArrayAtUrl} ArraySource */

const WINDOW_VALUES = 4 << 20; // numbers held at once while data is read: 16 MB

/**
 * @param {ArraySource} source @param {number} start @param {number} count @param {AbortSignal} [signal] ends it, though the source may never answer
 * @returns {Promise<ArrayLike<number>>}
 * @throws {EngineError} data_invalid where it gives another number of values
 */
export async function readRows(source, start, count, signal) {
  signal?.throwIfAborted();
  const values = await unlessAborted(ask(source, start, count, signal), signal);
  const columns = size(source.shape.slice(1));
  if (values?.length === count * columns) return values;
  const { field = "data" } = source;
  const message = `${field}: ${values?.length ?? "no"} values came for rows ${start} to ${start + count - 1}; needed: ${count * columns}, ${columns} a row`;
  throw new EngineError("data_invalid", message, { field });
}

/** @template T @param {Promise<T>} promise @param {AbortSignal} [signal] @returns {Promise<T>} */
function unlessAborted(promise, signal) {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort(); // while the promise was made
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** What a source gives for some rows, whatever it is. @param {ArraySource} source @param {number} start @param {number} count @param {AbortSignal} [signal] @returns {Promise<ArrayLike<number>>} */
export async function ask(source, start, count, signal) {
  if ("read" in source) return source.read(start, count, signal);
  if ("url" in source) return fetchRows(source, start, count, signal);
  const columns = size(source.shape.slice(1));
  const { data } = source;
  if (ArrayBuffer.isView(data)) return /** @type {any} */ (data).subarray(start * columns, (start + count) * columns);
  return Array.prototype.slice.call(data, start * columns, (start + count) * columns);
}

/** @param {ArrayAtUrl} source @param {number} start @param {number} count @param {AbortSignal} [signal] */
async function fetchRows({ shape, dtype = "float32", url, field = "data" }, start, count, signal) {
  const rowBytes = 4 * size(shape.slice(1));
  const [first, stop] = [start * rowBytes, (start + count) * rowBytes];
  const bad = (/** @type {string} */ why) => new EngineError("data_invalid", `${field}: rows ${start} to ${start + count - 1} of ${url}: ${why}`, { field });
  const response = await fetch(url, { headers: { Range: `bytes=${first}-${stop - 1}` }, signal }).catch((cause) => {
    signal?.throwIfAborted();
    throw new EngineError("internal", `${field}: ${url} can't be fetched: ${cause.message}`, { field, cause });
  });
  if (response.status !== 206) throw bad(`the answer is ${response.status}; needed: 206, a range of bytes`);
  // Another origin need not show it.
  const total = response.headers.get("Content-Range")?.match(/\/(\d+)$/)?.[1];
  if (total !== undefined && Number(total) !== rowBytes * shape[0]) throw bad(`there are ${total} bytes; its shape [${shape}] of ${dtype} needs ${rowBytes * shape[0]}`);
  const bytes = await response.arrayBuffer();
  if (bytes.byteLength !== stop - first) throw bad(`${bytes.byteLength} bytes came; its shape [${shape}] needs ${stop - first}`);
  return dtype === "int32" ? new Int32Array(bytes) : new Float32Array(bytes);
}

/**
 * Calls `use(firstRow, values)` for windows of whole rows, which the shape alone cuts.
 * @param {ArraySource} source @param {(firstRow: number, values: ArrayLike<number>) => void} use @param {AbortSignal} [signal]
 */
export async function eachWindow(source, use, signal) {
  const columns = size(source.shape.slice(1));
  const span = Math.max(1, Math.floor(WINDOW_VALUES / columns));
  for (let start = 0; start < source.shape[0]; start += span) {
    use(start, await readRows(source, start, Math.min(span, source.shape[0] - start), signal));
  }
}

/** The array in memory where it is no larger than a window, so that its rows can be read in any order. @param {ArraySource} source @param {AbortSignal} [signal] @returns {Promise<ArraySource>} */
export async function nearby(source, signal) {
  if ("data" in source || size(source.shape) > WINDOW_VALUES) return source;
  return { shape: source.shape, dtype: source.dtype, data: await readRows(source, 0, source.shape[0], signal) };
}

/** The same for whoever goes through the rows in order, in small steps: whole windows are read. @param {ArraySource} source @returns {ArraySource} */
export function buffered(source) {
  if ("data" in source) return source;
  const { shape, dtype } = source;
  const columns = size(shape.slice(1));
  /** @type {Promise<any>} */
  let values = Promise.resolve([]);
  let [first, stop] = [0, 0];
  return {
    shape,
    dtype,
    async read(start, count) {
      if (start < first || start + count > stop) {
        [first, stop] = [start, Math.min(shape[0], start + Math.max(count, Math.floor(WINDOW_VALUES / columns)))];
        values = readRows(source, first, stop - first).then((read) => (ArrayBuffer.isView(read) ? read : Float64Array.from(read)));
      }
      return (await values).subarray((start - first) * columns, (start + count - first) * columns);
    },
  };
}

/**
 * The same rows with their columns in another order.
 * @param {ArraySource} source [rows, columns] @param {number[]} order where in the source each column stands
 * @returns {ArrayReader}
 */
export function reordered(source, order) {
  const columns = order.length;
  return {
    shape: source.shape,
    dtype: source.dtype,
    async read(start, count, signal) {
      const values = await readRows(source, start, count, signal);
      return Float32Array.from(values, (_, i) => values[i - (i % columns) + order[i % columns]]);
    },
  };
}

/** Rows in any order, as the float32 that the device holds. @param {ArrayInMemory} source @param {ArrayLike<number>} rows @returns {Float32Array} [rows, columns] */
export function gatherRows({ shape, data }, rows) {
  const columns = size(shape.slice(1));
  const out = new Float32Array(rows.length * columns);
  for (let i = 0; i < rows.length; i++) for (let c = 0; c < columns; c++) out[i * columns + c] = data[rows[i] * columns + c];
  return out;
}

/**
 * What may be posted to the engine's thread of a source that only this thread can read. Its rows are asked for window by window.
 * @param {ArraySource|undefined} source checked @param {string} field as what it is given @returns {any}
 */
export function posted(source, field) {
  if (!source) return undefined;
  const { shape, dtype } = source;
  if ("url" in source) return { shape, dtype, field, url: addressOf(source.url) };
  return { shape, dtype, field, remote: true, ...("data" in source && { length: source.data.length }) };
}

/** An address as the page that names it means it. @param {string|URL} url @returns {string} @throws {TypeError} where it is none */
export const addressOf = (url) => new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href).href;

/** @param {any} values */
const isBig = (values) => typeof values[0] === "bigint";

/** The first of some values that is no number, or -1: null, true and "7" would be made into some. @param {ArrayLike<unknown>|null|undefined} values */
export const noNumberAt = (values) => (ArrayBuffer.isView(values) && !isBig(values) ? -1 : Array.prototype.findIndex.call(values ?? [], (value) => typeof value !== "number"));

/**
 * Values as an array of their own, to be handed over: posting a view copies all that it looks into.
 * @param {ArrayLike<number>|null|undefined} values
 * @throws {Error} where one is no number
 */
export function owned(values) {
  if (values instanceof Float32Array || values instanceof Int32Array) return values.slice();
  const wrong = noNumberAt(values);
  if (wrong >= 0) throw new Error(`value ${wrong} is ${shown(/** @type {any} */ (values)[wrong])}; legal: numbers`);
  return Float64Array.from(values ?? []);
}
