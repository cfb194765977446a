// Fragment rows: how many rows of a tensor one fragment writes, how many samples it sums at once, and among how many a long sum is shared, by what
// suits the device.
import { ROW_ALIGNMENT } from "./layout.js";

/** A number of rows, or one for tensors of `few`, the `usual`, or `many` fragments. @typedef {number|{few: number, usual: number, many: number}} RowsChoice */

/** A number of samples, or one for gradients of `few` turns and the `usual`. @typedef {number|{few: number, usual: number}} SamplesChoice */

/**
 * Rows that a fragment writes, where the device's render targets allow it: of activations and their gradients, of weights with their
 * states, of weight gradients that are stored. `samples`: whose products a weight gradient fetches at once, or whose texels a sum of row losses does,
 * a power of two and at most ROW_ALIGNMENT: 1 is the least to compile.
 * `texels`: of a row whose products a product fetches at once, a power of two; `single` where a fragment has one row.
 * `parts`: of the batch, among which a weight gradient is split that has fewer than `fragments`, and with those that it waits for `turns` of its
 * loops or more: `samples` of each part at least, `most` parts, and none where that makes fewer than `least`.
 * `slots`: batches in flight whose row losses are kept until one draw sums them all. `regions`: which parameters
 * share textures, so that their updates are one render pass: those whose update writes so many `texels` at most, states included; `alike`:
 * whether parameters of the same shape do too, whose draws have programs in common where each has its own texture.
 * `sums`: the logits of a softmax, which is read in few places, are sums of parts where they have fewer than `fragments`: so many `texels` of a row each at
 * least, and `most` parts.
 * `uniform`: from how many products on a dense layer's rows come from a uniform block, where they and the results have so many `texels` a row at least.
 * `gated`: from how many products on a gradient that may be is stored as gates.
 * `computed`: from how many products on a dense layer's operand is computed from the `inputs` of the layer before, if it has no more.
 * @typedef {{activation: RowsChoice, weight: number, gradient: number, samples?: SamplesChoice, texels?: number|{single: number, several: number}, slots?: number,
 *   parts?: {fragments: number, turns: number, samples: number, least: number, most: number}, regions?: {texels: number, alike: boolean},
 *   sums?: {fragments: number, texels: number, most: number},
 *   uniform?: {products: number, texels: number}, gated?: {products: number},
 *   computed?: {products: number, inputs: number}}} RowsWanted
 */

/**
 * Measured on SwiftShader and on an H200, see docs/performance.md: a GPU whose many units wait for one another wants a small activation's rows apart,
 * and has fragments enough of a large one to share more fetches among 8 rows; it waits less for samples that are fetched at once, where a CPU
 * only compiles longer, and has units idle while a few fragments go through a long batch. Its steps are so short that summing the losses of 32
 * at a time instead of 64 would cost a twentieth of them. It waits 5 us and more for a render pass that depends on another one, as long as it takes to
 * write 17,500 texels, and has many cores that compile; on a CPU a step of two passes instead of three takes a tenth less, but each program 0.05
 * to 0.1 s. Loads bound its large products, of 2^23 multiply-adds and more (a smaller one is done before a draw and a copy have put its rows into a
 * buffer), if a row group's fragments, with which the GPU may be alone, are three warps at least and loop for long enough.
 * @type {{software: RowsWanted, gpu: RowsWanted}}
 */
export const ROWS = {
  software: { activation: 4, weight: 4, gradient: 8, samples: { few: 1, usual: 4 }, texels: 1, slots: 32, regions: { texels: 17_500, alike: false } },
  gpu: {
    activation: { few: 1, usual: 4, many: 8 }, weight: 4, gradient: 8, samples: 16, texels: { single: 8, several: 2 }, slots: 64, regions: { texels: 17_500, alike: true },
    parts: { fragments: 512, turns: 40_960, samples: 64, least: 8, most: 32 }, sums: { fragments: 512, texels: 16, most: 8 }, uniform: { products: 2 ** 23, texels: 96 },
    gated: { products: 2 ** 23 }, computed: { products: 2 ** 23, inputs: 4 },
  },
};
/** Fragments of a draw below which they are few, and from which on they are many; texelgrad/memory.py counts with the same. */
const FEW_FRAGMENTS = 512;
const MANY_FRAGMENTS = 2048;
/** Turns of a gradient's loop below which compiling it costs more than it does in thousands of steps. */
const FEW_TURNS = 16_384;

/** @param {RowsChoice} choice @param {number} rows @param {number} texelsPerRow @returns {number} rows a fragment */
export function rowsFor(choice, rows, texelsPerRow) {
  if (typeof choice === "number") return choice;
  if ((rows / choice.many) * texelsPerRow >= MANY_FRAGMENTS) return choice.many;
  return (rows / choice.usual) * texelsPerRow < FEW_FRAGMENTS ? choice.few : choice.usual;
}

/** @param {RowsWanted["texels"]} choice @param {number} rows a fragment @returns {number} texels at once */
export function texelsFor(choice, rows) {
  if (typeof choice !== "object") return choice ?? 1;
  return rows === 1 ? choice.single : choice.several;
}

/** However few fragments a draw has, each sample that they wait for takes as long as so many fragments more would. */
const WAITING_FRAGMENTS = 16;

/**
 * Into how many parts a batch is split whose samples a weight gradient sums: its few fragments would wait for their fetches one after the other.
 * @param {RowsWanted["parts"]} choice @param {number} rows of a batch @param {number} fragments @returns {number}
 */
export function partsFor(choice, rows, fragments) {
  if (!choice || fragments >= choice.fragments || rows * (fragments + WAITING_FRAGMENTS) < choice.turns) return 1;
  const parts = Math.min(choice.most, Math.floor(rows / choice.samples));
  return parts < choice.least ? 1 : parts;
}

/**
 * Into how many parts a sum over the texels of a row is split, all of one length: its few fragments would wait for their fetches one after the other.
 * @param {RowsWanted["sums"]} choice @param {number} texels @param {number} fragments @returns {number} a power of two
 */
export function sumPartsFor(choice, texels, fragments) {
  if (!choice || fragments >= choice.fragments) return 1;
  let parts = 1;
  while (parts * 2 <= choice.most && texels % (parts * 2) === 0 && texels / (parts * 2) >= choice.texels) parts *= 2;
  return parts;
}

/** @param {SamplesChoice|undefined} choice as many as a batch is aligned to where left out @param {number} turns of all fragments, over all samples @returns {number} samples at once */
export function samplesFor(choice, turns) {
  if (choice === undefined) return ROW_ALIGNMENT;
  if (typeof choice === "number") return choice;
  return turns < FEW_TURNS ? choice.few : choice.usual;
}
