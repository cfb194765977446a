// Uniform rows: which products of dense layers take the rows of their left operand from a uniform block, and how these lie there. Pure arithmetic.
//
// A fragment's 8 x 4 results take 12 loads for 128 multiply-adds where both operands are textures. The 8 values of a row group's rows are the same
// for all its fragments: from a uniform block they come beside the loads, not among them, but only where a whole draw has one address. So each row group
// is a draw, with its own block of a buffer, into which one draw and one copy have put what all rows hold, group by group.
// Weight gradients do the same: the rows that they write are columns of X, of which a block holds 8, sample by sample.
import { roundUp, size, texelsOf } from "./layout.js";

/** @import { RowsWanted } from "./fragment_rows.js" */
/** @import { Limits } from "./lower.js" */
/** @import { Group } from "../../plan/fuse.js" */
/** @import { Phase } from "../../plan/plan.js" */

/** Rows of a group. */
export const UNIFORM_ROWS = 8;
/** Lines that it covers in the tensor that the product writes. */
export const UNIFORM_LINES = 2;
/** Texels of a row whose products are made at once, by kernel: all their weights are fetched before the first is used. @type {Record<string, number>} */
export const UNIFORM_TEXELS = { affine: 4, affine_grad_input: 2 };
/** Of a batch: the lines of its results fit every texture. No longer one has been measured, and texelgrad/memory.py counts on it. */
export const MOST_ROWS = 8192;
/** What is assumed of a device that says nothing, the least that WebGL2 has, and what is taken at most: more has not been measured. */
const LEAST_BLOCK_BYTES = 16 << 10;
const MOST_BLOCK_BYTES = 64 << 10;
/** No device asks for a larger UNIFORM_BUFFER_OFFSET_ALIGNMENT: two column texels of 8 rows. */
const ALIGNMENT_BYTES = 256;
const TEXEL_BYTES = 16;

/** Texels of a sample in the block of a weight gradient: 8 of its columns. */
const SAMPLE_TEXELS = UNIFORM_ROWS / 4;

/** Texels of such a block, a multiple of what ALIGNMENT_BYTES asks for. @param {number} rows of a batch, aligned */
export const columnsBlockOf = (rows) => SAMPLE_TEXELS * rows;

/** Texels of a row group's block, and of a line of the texture from which it is copied. @param {number} texelsPerRow of the operand */
export const blockOf = (texelsPerRow) => roundUp(UNIFORM_ROWS * texelsPerRow * TEXEL_BYTES, ALIGNMENT_BYTES) / TEXEL_BYTES;

/** A group's product. @param {Group} group @returns {{operand: string, result: string}|null} */
function productOf({ ops }) {
  const [{ type, inputs }] = ops;
  const { outputs } = ops[ops.length - 1];
  if (type === "affine" && !ops.some((op) => op.type === "loss")) return { operand: inputs.x, result: outputs.y };
  return type === "affine_grad_input" ? { operand: inputs.dy, result: outputs.dx } : null;
}

/** Texels of a row of both. @typedef {{operand: number, result: number}} UniformProduct */

/**
 * The products of a phase that are large enough, and fit the device, by the names of their results.
 * @param {Phase} phase @param {number} rows of a batch, aligned @param {RowsWanted} wanted @param {Limits} limits @param {Set<string>} [gated] gradients
 * @returns {Map<string, UniformProduct>}
 */
export function uniformProducts({ groups, tensors, computed }, rows, { uniform }, { maxDrawBuffers, maxTextureSize, copiedBlockBytes = LEAST_BLOCK_BYTES }, gated) {
  /** @type {Map<string, UniformProduct>} */
  const found = new Map();
  if (!uniform || maxDrawBuffers < UNIFORM_ROWS || rows > MOST_ROWS) return found;
  const rowOf = (/** @type {string} */ name) => {
    const shape = /** @type {import("../../nn/graph.js").Tensor} */ (tensors.get(name)).shape;
    return { values: size(shape), texels: texelsOf(shape) };
  };
  for (const group of groups) {
    const product = productOf(group);
    if (!product || computed.has(product.operand) || gated?.has(product.operand) || gated?.has(product.result)) continue;
    const [operand, result] = [rowOf(product.operand), rowOf(product.result)];
    const block = blockOf(operand.texels);
    const large = rows * operand.values * result.values >= uniform.products && Math.min(operand.texels, result.texels) >= uniform.texels;
    const fits = block * TEXEL_BYTES <= Math.min(copiedBlockBytes, MOST_BLOCK_BYTES) && Math.max(block, 2 * Math.ceil(result.texels / 4)) <= maxTextureSize;
    if (large && fits) found.set(product.result, { operand: operand.texels, result: result.texels });
  }
  return found;
}

/** Whose columns it takes, the weights that are updated with it, if they are, and the result of the last product before it that takes rows: all are arranged at once.
 * @typedef {{x: string, w: string|undefined, beside: string}} UniformGradient */

/**
 * Weight gradients that are large enough.
 * @param {Phase} phase @param {number} rows of a batch, aligned @param {Map<string, UniformProduct>} products that take rows so: what they write lies in quads
 * @param {RowsWanted} wanted
 * @returns {Map<string, UniformGradient>} by their names; one whose update ends its draw is made from textures all the same
 */
export function uniformGradients({ groups, tensors, computed }, rows, products, { uniform }) {
  const made = groups.map(({ outputs }) => Object.values(outputs));
  const inQuads = new Set([...products.values()].map(({ result }) => result));
  const shapeOf = (/** @type {string} */ name) => /** @type {import("../../nn/graph.js").Tensor} */ (tensors.get(name)).shape;
  // As long as the longest block of rows at most, so that they lie in the same lines and are blocks that fit.
  const longest = Math.max(0, ...[...products.values()].map(({ operand }) => blockOf(operand)));
  /** @type {Map<string, UniformGradient>} */
  const found = new Map();
  groups.forEach(({ kernel, ops }, i) => {
    const [{ inputs, outputs }] = ops;
    if (!uniform || columnsBlockOf(rows) > longest || kernel !== "affine_grad_weights" || computed.has(inputs.x)) return;
    const [x, dy] = [shapeOf(inputs.x), shapeOf(inputs.dy)];
    const large = rows * size(x) * size(dy) >= uniform.products && texelsOf(x) >= uniform.texels && blockOf(texelsOf(x)) <= longest;
    const maker = made.findIndex((names) => names.includes(inputs.x));
    const beside = made.slice(maker + 1, i).flat().findLast((name) => products.has(name));
    if (large && beside && inQuads.has(texelsOf(dy))) found.set(outputs.dw, { x: inputs.x, w: ops.find(({ type }) => type === "update")?.inputs.w, beside });
  });
  return found;
}

/**
 * Weights all of whose products are among these, which therefore may be spread: what the quads of such products load lies in 4 of their 8 layers.
 * @param {Phase} phase @param {Map<string, UniformProduct>} products @returns {Set<string>}
 */
export function uniformWeights({ groups }, products) {
  const uses = groups.flatMap((group) => {
    const [{ type, inputs }] = group.ops;
    return type === "affine" || type === "affine_grad_input" ? [{ w: inputs.w, uniform: products.has(productOf(group)?.result ?? "") }] : [];
  });
  return new Set(uses.map(({ w }) => w).filter((w) => uses.every((use) => use.w !== w || use.uniform)));
}
