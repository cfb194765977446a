// data_probe.js: the split and the normalization of the engine as plain values, for test_splits.py and test_normalize.py.
import { EngineError } from "../../browser_runtime/errors.js";
import { checkArray, inputCheck, readClasses, targetCheck } from "../../browser_runtime/train/data.js";
import { Held } from "../../browser_runtime/train/held.js";
import { fit, normalizationRecord, normalized } from "../../browser_runtime/train/normalization.js";
import { readRows } from "../../browser_runtime/train/sources.js";
import { isStratified, split } from "../../browser_runtime/train/split.js";

/** @param {() => any} act @returns {Promise<any>} what it gives, or what its error says */
async function said(act) {
  try {
    return await act();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return { error: { code: error.code, field: error.field, message: error.message } };
  }
}

/** The split of a spec on targets. @param {any} spec @param {any} y @param {"index"|"values"} labels @param {number} outputs */
export const splitOf = (spec, y, labels, outputs) =>
  said(async () => split(spec, y.shape[0], isStratified(spec) ? await readClasses(spec, y, targetCheck(spec, labels, outputs)) : null));

const FEW = 1e5; // rows: more are slow to hand over

/** What is fitted on some rows, and the first rows after it. @param {"standard"|"minmax"} kind @param {any} x @param {any} train */
export const fitted = (kind, x, train) =>
  said(async () => {
    checkArray("data.x", x);
    const normalization = await fit(kind, x, train.data, inputCheck("data.x"));
    return { ...normalizationRecord([], { input: normalization }), x: Float32Array.from(await readRows(normalized(normalization, x), 0, Math.min(FEW, x.shape[0]))) };
  });

/**
 * Rows that were written in pieces, gathered in another order.
 * @param {any} x @param {number} blockBytes @param {number[]} pieces rows of each @param {number[]} order
 */
export function held({ shape: [rows, columns], data }, blockBytes, pieces, order) {
  const all = new Held(rows, columns, blockBytes);
  let first = 0;
  for (const count of pieces) {
    all.write(first, data.subarray(first * columns, (first + count) * columns));
    first += count;
  }
  return { shape: [order.length, columns], data: all.gather(order) };
}
