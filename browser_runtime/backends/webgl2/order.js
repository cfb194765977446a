// Order: when a step's groups are drawn. Updates wait for one another where they are drawn cheaper together. Pure arithmetic.

/** @import { Draw } from "./draw.js" */
/** @import { Group } from "../../plan/fuse.js" */
/** @import { Phase } from "../../plan/plan.js" */

/**
 * Moves updates back, as long as what they read is kept anyway, or is small. A step reads parameters as they were before it, so nothing waits for
 * an update.
 * @param {Phase} phase of training
 * @param {(group: Group) => boolean} waits which groups, whose outputs are parameters and states only
 * @param {(tensor: string) => boolean} small what may live up to the end
 * @returns {Phase} in which no other tensor lives together with more than it did
 */
export function delayUpdates(phase, waits, small) {
  const { groups, lifetimes } = phase;
  const lastRead = (/** @type {string} */ name) => (small(name) ? undefined : lifetimes.get(name)?.last);
  const places = groups.map((group, i) => {
    // Right behind the last group that reads what it reads.
    const place = waits(group) ? Math.min(groups.length, ...Object.values(group.inputs).flatMap((name) => lastRead(name) ?? [])) + 0.5 : i;
    return { group, place };
  });
  const ordered = places.sort((a, b) => a.place - b.place).map(({ group }) => group);
  /** The first and the last group that makes or reads a tensor. @type {Map<string, {first: number, last: number}>} */
  const uses = new Map();
  ordered.forEach(({ inputs, outputs }, i) => {
    for (const name of [...Object.values(outputs), ...Object.values(inputs)]) uses.set(name, { first: uses.get(name)?.first ?? i, last: i });
  });
  const lived = [...lifetimes].map(([name, { last }]) => {
    const use = /** @type {{first: number, last: number}} */ (uses.get(name));
    // What outlives the last group still does.
    return /** @type {const} */ ([name, { first: use.first, last: last === groups.length ? last : use.last }]);
  });
  return { ...phase, groups: ordered, lifetimes: new Map(lived) };
}

/**
 * Moves draws that no other waits for back to the next of them into the same texture, so that both are one render pass, unless something between them writes
 * what they read.
 * @param {Draw[]} draws in an order of execution @param {Set<Draw>} free whose results only later draws read @param {(slot: number) => number} textureOf
 * @returns {Draw[]}
 */
export function gatherDraws(draws, free, textureOf) {
  const ordered = [...draws];
  const textures = (/** @type {{slots: number[]}[]} */ uses) => new Set(uses.flatMap(({ slots }) => slots.map(textureOf)));
  const targetOf = (/** @type {Draw} */ { writes: [{ slots }] }) => textureOf(slots[0]);
  for (const draw of [...draws].reverse()) {
    if (!free.has(draw)) continue;
    const at = ordered.indexOf(draw);
    const next = ordered.findIndex((other, i) => i > at && free.has(other) && targetOf(other) === targetOf(draw));
    const reads = textures([...draw.reads, ...(draw.uniform ? [{ slots: [draw.uniform.slot] }] : [])]);
    const meets = ordered.slice(at + 1, next).some(({ writes }) => [...textures(writes)].some((texture) => reads.has(texture)));
    if (next < 0 || meets) continue;
    ordered.splice(next, 0, draw);
    ordered.splice(at, 1);
  }
  return ordered;
}
