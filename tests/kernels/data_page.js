// data_page.js: data sets of every kind of source, for test_data.py.
import { compile } from "../../browser_runtime/texelgrad.js";

/** Numbers that no seed is needed for, within -1 to 1. @param {number} length */
function waves(length) {
  const out = new Float32Array(length);
  for (let i = 0; i < length; i++) out[i] = ((i * 7919 + (i >> 5)) % 2003) / 1001 - 1;
  return out;
}

/** @param {{shape: number[], data: any, dtype: string}} array @param {string} kind */
function sourceOf({ shape, data, dtype }, kind) {
  const columns = data.length / shape[0];
  if (kind === "memory") return { shape, dtype, data };
  if (kind === "view") {
    // In the middle of a larger array, of which nothing else may be copied.
    const all = new data.constructor(data.length + 2000);
    all.set(data, 1000);
    return { shape, dtype, data: all.subarray(1000, 1000 + data.length) };
  }
  if (kind === "url") return { shape, dtype, url: URL.createObjectURL(new Blob([data])) };
  return { shape, dtype, read: async (/** @type {number} */ start, /** @type {number} */ count) => data.subarray(start * columns, (start + count) * columns) };
}

/** Largest array that is posted to a Worker, in bytes, while `act` runs. @param {() => Promise<any>} act */
async function largestMessage(act) {
  const { postMessage } = Worker.prototype;
  let bytes = 0;
  const look = (/** @type {any} */ value) => {
    if (ArrayBuffer.isView(value)) bytes = Math.max(bytes, value.buffer.byteLength);
    else if (value && typeof value === "object") Object.values(value).forEach(look);
  };
  Worker.prototype.postMessage = function (/** @type {any} */ message, /** @type {any} */ transfer) {
    look(message);
    return postMessage.call(this, message, transfer);
  };
  try {
    return { ...(await act()), bytes };
  } finally {
    Worker.prototype.postMessage = postMessage;
  }
}

/**
 * Trains on several windows of made-up rows, and does everything that reads data.
 * @param {any} spec @param {number} rows @param {number} columns @param {string} kind of source @param {any} [options] of compile
 */
export function everything(spec, rows, columns, kind, options = {}) {
  return largestMessage(async () => {
    const x = sourceOf({ shape: [rows, columns], data: waves(rows * columns), dtype: "float32" }, kind);
    const y = sourceOf({ shape: [rows], data: Int32Array.from({ length: rows }, (_, i) => (i * 7) % 3), dtype: "int32" }, kind);
    const session = await compile(spec, { ...options, data: { x, y }, thread: "worker" });
    try {
      await session.run();
      const report = await session.diagnose("basic");
      return {
        weights: await session.weightsFile(),
        losses: report.firstLosses.map((/** @type {any} */ each) => each.relativeError),
        operators: report.operators.length,
        evaluated: await session.evaluate({ x, y }),
        validated: spec.data && (await session.evaluate()),
        normalization: session.record.normalization,
      };
    } finally {
      await session.dispose();
    }
  });
}

/** An address that can't be read as it should. @param {any} spec @param {any} x @param {any} y @param {string} url */
export function unreadable(spec, x, y, url) {
  return compile(spec, { data: { x: { shape: x.shape, url }, y } });
}

/** Rows at an address whose description may be wrong. @param {any} spec @param {any} x @param {any} y @param {any} description instead of the true one */
export async function described(spec, x, y, description) {
  const url = URL.createObjectURL(new Blob([x.data]));
  const session = await compile(spec, { data: { x: { shape: x.shape, url, ...description }, y } });
  await session.dispose();
}
