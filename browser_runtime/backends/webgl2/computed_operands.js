// Computed operands: which products of dense layers compute their left operand from what the layer before reads, although it is stored. Pure arithmetic.
//
// Loads bound a large product on a GPU: 8 x 4 results take 8 of the operand's rows and 4 of weights. Where the operand is a relu layer of few inputs, a texel of
// them a row, these stay in registers, and that layer's weights take the place of the 8: 4 loads and one for each input and the bias. What the relu shuts adds
// nothing, which costs no instruction but a predicate. Everybody else reads the operand where it is stored.
import { rowsFor } from "./fragment_rows.js";
import { size, texelsOf } from "./layout.js";
import { fitsBelow } from "./stored_gradients.js";

/** @import { Tenant } from "./arena.js" */
/** @import { RowsWanted } from "./fragment_rows.js" */
/** @import { Limits } from "./lower.js" */
/** @import { Op } from "../../nn/graph.js" */
/** @import { Group } from "../../plan/fuse.js" */
/** @import { Phase } from "../../plan/plan.js" */
/** @import { Computed } from "../../plan/recompute.js" */

/** Rows of a fragment of such a product. */
const ROWS = 8;
/** Texels of the operand at once: 1, 2 and 4 have been measured. */
export const COMPUTED_TEXELS = 4;

/**
 * The phase with groups that read what their operand is computed from, and how each computes it.
 * @param {Phase} phase @param {number} rows of a batch, aligned @param {RowsWanted} wanted @param {Limits} limits
 * @param {Map<string, import("./uniform_rows.js").UniformProduct>} uniform products that take rows from uniform blocks, by their results
 * @returns {{phase: Phase, operands: Map<Group, {name: string, how: Computed}>}}
 */
export function computedOperands(phase, rows, wanted, { maxDrawBuffers }, uniform) {
  /** @type {Map<Group, {name: string, how: Computed}>} */
  const operands = new Map();
  const { groups, tensors, computed, lifetimes } = phase;
  const shapeOf = (/** @type {string} */ name) => /** @type {import("../../nn/graph.js").Tensor} */ (tensors.get(name)).shape;
  /** How the operand of a group that is worth it is computed. @param {Group} group @param {number} i @returns {{product: Op, activation: Op}|null} */
  const howOf = ({ kernel, ops }, i) => {
    if (!wanted.computed || maxDrawBuffers < ROWS || kernel !== "affine" || ops.some(({ type }) => type === "loss")) return null;
    const [{ inputs }] = ops;
    const result = ops[ops.length - 1].outputs.y;
    if (uniform.has(result) || rowsFor(wanted.activation, rows, texelsOf(shapeOf(result))) !== ROWS) return null;
    const maker = groups.find(({ outputs }) => Object.values(outputs).includes(inputs.x));
    const [product, activation] = maker?.ops ?? [];
    if (maker?.kernel !== "affine" || activation?.attrs.fn !== "relu") return null;
    const { x } = product.inputs;
    // A texel, and stored.
    if (texelsOf(shapeOf(x)) > 1 || size(shapeOf(x)) > wanted.computed.inputs || computed.has(x)) return null;
    if (rows * size(shapeOf(inputs.x)) * size(shapeOf(result)) < wanted.computed.products) return null;
    const lives = (lifetimes.get(x)?.last ?? Infinity) >= i;
    const readers = groups.filter((other) => Object.values(other.inputs).includes(inputs.x));
    return lives && readers.length > 1 ? { product, activation } : null;
  };
  const rewritten = groups.map((group, i) => {
    const how = howOf(group, i);
    if (!how) return group;
    const { x: name, ...others } = group.inputs;
    const { x, w } = how.product.inputs;
    const reading = { ...group, inputs: { ...others, "x.x": x, "x.w": w }, recomputed: [how.product, how.activation] };
    operands.set(reading, { name, how });
    return reading;
  });
  return { phase: { ...phase, groups: rewritten }, operands };
}

/**
 * Operands that the product behind them computes lie below its result where they fit: the two draws are one render pass, since neither waits for the other.
 * @param {Tenant[]} tensors @param {Group[]} groups in their order @param {Map<Group, {name: string}>} operands @param {number} maxSize MAX_TEXTURE_SIZE
 * @returns {Tenant[]}
 */
export function belowResults(tensors, groups, operands, maxSize) {
  const tenants = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  groups.forEach((group, i) => {
    const name = operands.get(group)?.name ?? "";
    // Nothing lies below the operand itself: its layer has few inputs, whose gradient is folded.
    const [operand, result] = [tenants.get(name), tenants.get(Object.values(group.outputs)[0])];
    if (!operand || !result || !Object.values(groups[i - 1].outputs).includes(name)) return;
    if (!fitsBelow(result.layout, operand.layout, maxSize)) return;
    tenants.delete(name);
    const [first, last] = [Math.min(operand.first, result.first), Math.max(operand.last, result.last)];
    tenants.set(result.name, { ...result, first, last, below: operand });
  });
  return [...tenants.values()];
}
