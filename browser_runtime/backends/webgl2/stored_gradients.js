// Stored gradients: which dense layers' weight gradients are stored before an update of their own reads them, and what each is one render pass with: the
// gradient of the layer's input, which is drawn before it, or where a batch is shared out in parts the gradients of its neighbours. Pure arithmetic.
import { partsFor } from "./fragment_rows.js";
import { filled, isPowerOfTwo, layoutInParts, matrixOf, rowsPerFragment, sizeAbove, turnedLayout } from "./layout.js";
import { UNIFORM_LINES, UNIFORM_ROWS } from "./uniform_rows.js";

/** @import { Layout } from "./layout.js" */
/** @import { Lowering } from "./lowering.js" */
/** @import { Group } from "../../plan/fuse.js" */

/**
 * A gradient is stored, and the update made in a draw of its own, where that saves more texel fetches than this: what a draw costs,
 * 33 us at 0.5 G fetches/s on SwiftShader, 5 us at 21 G/s on an H200, and what the store of each texel does there.
 */
const FETCHES_WORTH_A_DRAW = 100_000;
const FETCHES_WORTH_A_STORE = 10;
/** A texture may be so many times as large as what lies in it. */
const MOST_WASTE_BELOW = 1.25;

/** @param {Lowering} lowering @param {string} gradient of weights @returns {Layout} of one, where parts of it are stored */
export function partLayout(lowering, gradient) {
  const { shape, bias } = lowering.tensor(gradient);
  return lowering.measure({ ...matrixOf(shape), layers: rowsPerFragment(4, lowering.maxDrawBuffers), bias });
}

/** Into how many parts the sum over the batch is split. @param {Lowering} lowering @param {Group} group of a dense layer's weight gradient */
export const partsOf = (lowering, group) => partsFor(lowering.wanted.parts, lowering.batchRows, partLayout(lowering, group.ops[0].outputs.dw).texels);

/**
 * How a weight gradient whose update is fused with it is stored: with as many rows a fragment as there are render targets, where the update has fewer.
 * @param {Lowering} lowering @param {Group} group of a dense layer's weight gradient
 * @returns {Layout|null} null where the update ends its draw, or adds parts
 */
export function storedGradient(lowering, group) {
  const [{ inputs, outputs }] = group.ops;
  if (lowering.isGated(inputs.dy)) return turnedLayout(lowering.tensor(outputs.dw), lowering.arena.maxSize);
  const update = group.ops.find(({ type }) => type === "update");
  if (!update || partsOf(lowering, group) > 1) return null;
  const domain = lowering.layout(update.inputs.w);
  // Fetches a sample and column texel: each fragment reads one texel of DY and one of X for each 4 of its rows.
  const fetches = (/** @type {number} */ rows) => (domain.rows / rows) * (1 + Math.ceil(rows / 4));
  const layers = rowsPerFragment(lowering.wanted.gradient, lowering.maxDrawBuffers);
  const saved = (fetches(domain.layers) - fetches(layers)) * domain.texelsPerRow * lowering.batchRows;
  const stores = domain.rows * domain.texelsPerRow;
  if (saved < FETCHES_WORTH_A_DRAW + stores * FETCHES_WORTH_A_STORE) return null;
  const { shape, bias } = lowering.tensor(update.inputs.dw);
  if (lowering.uniformGradients.has(outputs.dw)) return lowering.measure({ ...matrixOf(shape), layers: UNIFORM_ROWS, bias, lines: UNIFORM_LINES });
  return lowering.measure({ ...matrixOf(shape), layers, bias });
}

/** A stored gradient, and the place in the order of the group that makes it and updates from it. @typedef {{name: string, layout: Layout, group: number}} Gradient */

/**
 * The gradients that are stored in parts, each with an update from them.
 * @param {Lowering} lowering
 * @returns {Gradient[]}
 */
export function gradientsInParts(lowering) {
  return lowering.phase.groups.flatMap((group, i) => {
    const { kernel, ops } = group;
    const parts = kernel === "affine_grad_weights" && ops.some(({ type }) => type === "update") ? partsOf(lowering, group) : 1;
    const name = ops[0].outputs.dw;
    return parts > 1 ? [{ group: i, name, layout: layoutInParts(partLayout(lowering, name), parts, lowering.arena.maxSize) }] : [];
  });
}

/**
 * The stored gradients that are drawn right behind the gradient of the same layer's input: which may lie below which.
 * @param {Lowering} lowering
 * @returns {Map<string, Gradient>} by the input's gradient, which lives longer than the draws that make and read the stored one
 */
export function gradientsBelow(lowering) {
  /** @type {Map<string, Gradient>} */
  const found = new Map();
  lowering.phase.groups.forEach((group, i, groups) => {
    if (group.kernel !== "affine_grad_weights" || groups[i - 1]?.kernel !== "affine_grad_input") return;
    const [{ inputs, outputs }] = group.ops;
    const [product] = groups[i - 1].ops;
    const layout = product.inputs.dy === inputs.dy && storedGradient(lowering, group);
    if (layout) found.set(Object.values(groups[i - 1].outputs)[0], { name: outputs.dw, layout, group: i });
  });
  return found;
}

/**
 * Whether it fits below the other: draws into both have the same render targets, and few texels are padding.
 * @param {Layout} upper @param {Layout} lower @param {number} maxSize MAX_TEXTURE_SIZE
 */
export function fitsBelow(upper, lower, maxSize) {
  const own = filled(upper, maxSize);
  if (upper.folded || upper.layers !== lower.layers || (lower.folded && !isPowerOfTwo(own.width))) return false;
  const both = sizeAbove(own, lower);
  const texels = own.width * own.height + lower.texels;
  return both.width * both.height <= MOST_WASTE_BELOW * texels && Math.max(both.width, both.height) <= maxSize;
}
