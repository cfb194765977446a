// Order: when a step's groups are drawn. Updates wait for one another where they are drawn cheaper together. Pure arithmetic.

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
  const lived = [...lifetimes].map(([name, { last }]) => {
    const uses = ordered.flatMap(({ inputs, outputs }, i) => ([...Object.values(outputs), ...Object.values(inputs)].includes(name) ? [i] : []));
    // What outlives the last group still does.
    return /** @type {const} */ ([name, { first: uses[0], last: last === groups.length ? last : uses[uses.length - 1] }]);
  });
  return { ...phase, groups: ordered, lifetimes: new Map(lived) };
}
