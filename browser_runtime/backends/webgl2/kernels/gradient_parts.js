// Gradients of weights as long sums, which several fragments share, and what adds their parts.
import { layoutInParts } from "../layout.js";
import { partLayout } from "../stored_gradients.js";
import { find, MAX_TRIPS } from "./common.js";
import { updateParts } from "./update.js";

/** @import { KernelRead } from "../draw.js" */
/** @import { Layout } from "../layout.js" */
/** @import { Lowering } from "../lowering.js" */

/** Fragments that a draw should have: what a GPU holds at once. */
const FRAGMENTS = 8192;
/** Trips of the update for each part of a gradient that it adds: for every row that it writes. */
const TRIPS_OF_PART = 8;

/**
 * How a sum is shared out: into how many parts, how often a fragment that makes one loops, and what it is told of that.
 * @typedef {{parts: number, trips: number, defines?: Record<string, string|number>}} Shares
 */

/**
 * The draw that makes the parts, and what adds them: the update, or where the gradient is read again, a draw that stores it.
 * @param {Lowering} lowering @param {any} group
 * @param {{kernel: string, gradient: string, share: (one: Layout) => Shares, defines?: Record<string, string|number>, reads: KernelRead[]}} sum
 *   `share`: of a gradient laid out as `one`
 */
export function gradientInParts(lowering, group, { kernel, gradient, share, defines, reads }) {
  const fused = find(group, "update");
  const one = partLayout(lowering, gradient);
  const { parts, trips, defines: shared } = share(one);
  const alone = !fused && parts === 1;
  const name = alone ? gradient : lowering.scratch(fused ? gradient : `parts of ${gradient}`, layoutInParts(one, parts, lowering.arena.maxSize)).name;
  const sums = lowering.draw(kernel, {
    trips,
    defines: { ...defines, ...shared, SPLITS: parts, WEIGHT_GROUPS: one.groups },
    reads,
    writes: [lowering.write("DW", name)],
    domain: lowering.layout(name),
  });
  if (alone) return [sums];
  const split = { SPLITS: parts, DW_SPLIT_ROWS: one.groups * one.layers };
  if (!fused) {
    return [sums, lowering.draw("sum_parts", { trips: parts, defines: split, reads: [lowering.read("P", name)], writes: [lowering.write("S", gradient)], domain: one })];
  }
  const { update, states } = updateParts(lowering, group);
  return [sums, lowering.draw("update", { ...update, trips: TRIPS_OF_PART * parts, defines: { ...update.defines, ...split }, reads: [lowering.read("DW", name), ...states] })];
}

/** Enough fragments to fill a device or to keep their loops short, and no less than a line each.
 * @param {number} lines @param {number} tripsOfLine @returns {(one: Layout) => Shares} */
export const sharedLines = (lines, tripsOfLine) => ({ texels }) => {
  const least = Math.max(Math.ceil(FRAGMENTS / texels), Math.ceil(lines / Math.max(1, Math.floor(MAX_TRIPS / tripsOfLine))));
  const parts = Math.max(1, Math.min(lines, least, MAX_TRIPS / TRIPS_OF_PART));
  return { parts, trips: Math.ceil(lines / parts) * tripsOfLine };
};
