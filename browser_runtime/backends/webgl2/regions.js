// Regions: which parameters share a texture, one below the other, so that the draws that update them are one render pass. Pure arithmetic.
import { ceilDiv, extent, layoutOf, matrixOf, rowsPerFragment, SPREAD_LAYERS, stackedSize } from "./layout.js";
import { UNIFORM_LINES } from "./uniform_rows.js";

/** @import { RowsWanted } from "./fragment_rows.js" */
/** @import { Layout } from "./layout.js" */
/** @import { Limits } from "./lower.js" */
/** @import { Group } from "../../plan/fuse.js" */
/** @import { Parameter } from "../../nn/model.js" */
/** @import { Plan } from "../../plan/plan.js" */

/** A parameter with its layout, which its states have too. @typedef {{parameter: Parameter, layout: Layout}} Laid */

/** A texture may be so many times as large as those that its parameters would have alone: their widths differ. */
const MOST_WASTE = 1.5;

/** Groups that update in one draw, which can follow another's; where a GPU splits a long batch, in two, whose passes are the lesser cost. */
const UPDATED_AT_ONCE = ["affine_grad_weights", "update"];

/** The parameter that a group updates, where its draw may follow others of its kind at once. @param {Group} group @returns {string|undefined} */
export const updatedAtOnce = ({ kernel, ops }) => (UPDATED_AT_ONCE.includes(kernel) ? ops.find(({ type }) => type === "update")?.inputs.w : undefined);

/**
 * All parameters, by the texture in which they lie. Those share one whose update takes less time than a render pass takes to begin, and where parameters alike do,
 * others whose lines are of one length.
 * @param {Plan} plan @param {Limits} limits @param {RowsWanted} wanted @param {number} outputs render targets a row: of a parameter and its states
 * @param {Set<string>} spreadable which are spread where their fragments may write 8 rows, as many as those of a stored gradient, so that none is stored
 * @param {Set<string>} inQuads which of these lie in quads, as their gradients take columns from uniform blocks
 * @returns {Laid[][]}
 */
export function parameterTextures({ parameters, phases: { train } }, { maxDrawBuffers, maxTextureSize }, wanted, outputs, spreadable, inQuads) {
  const matrixFor = (/** @type {Parameter} */ { tensor }) => matrixOf(train.tensors.get(tensor)?.shape ?? []);
  const texelsOf = (/** @type {Parameter} */ parameter) => {
    const { rows, columns } = matrixFor(parameter);
    return rows * ceilDiv(columns, 4);
  };
  const isSpread = (/** @type {Parameter} */ { tensor }) => spreadable.has(tensor) && SPREAD_LAYERS * outputs <= maxDrawBuffers;
  const laid = (/** @type {Parameter} */ parameter) => {
    const spread = isSpread(parameter);
    const layers = spread ? SPREAD_LAYERS : rowsPerFragment(wanted.weight, maxDrawBuffers, { outputs });
    return { parameter, layout: layoutOf({ ...matrixFor(parameter), layers, bias: parameter.bias, spread, lines: spread && inQuads.has(parameter.tensor) ? UNIFORM_LINES : 1 }, maxTextureSize) };
  };
  const { texels: most, alike } = wanted.regions ?? { texels: 0, alike: false };
  const atOnce = new Set(train.groups.map(updatedAtOnce));
  const kind = (/** @type {Parameter} */ { shape, bias }) => `${shape} ${bias}`;
  /** How many there are of each. @type {Map<string, number>} */
  const kinds = new Map();
  for (const parameter of parameters) kinds.set(kind(parameter), (kinds.get(kind(parameter)) ?? 0) + 1);
  const small = parameters.filter((p) => p.trainable && !isSpread(p) && atOnce.has(p.tensor) && texelsOf(p) * outputs <= most && (alike || kinds.get(kind(p)) === 1));
  const shared = stacks(small.map(laid), maxTextureSize);
  const sharing = new Set(shared.flat().map(({ parameter }) => parameter));
  const others = parameters.filter((parameter) => !sharing.has(parameter)).map(laid);
  const mayShare = (/** @type {Laid} */ { parameter: p, layout }) => alike && p.trainable && atOnce.has(p.tensor) && !layout.folded && !layout.spread;
  const lengths = new Set(others.map(({ layout }) => layout.texelsPerRow));
  const level = [...lengths].flatMap((length) => stacks(others.filter((one) => mayShare(one) && one.layout.texelsPerRow === length), maxTextureSize));
  const stacked = new Set(level.flat().map(({ parameter }) => parameter));
  return [...shared, ...level, ...others.filter(({ parameter }) => !stacked.has(parameter)).map((one) => [one])];
}

/**
 * Those that fit together, two at least, the widest first.
 * @template {{layout: Layout}} T
 * @param {T[]} all of as many layers each @param {number} maxTextureSize @returns {T[][]}
 */
export function stacks(all, maxTextureSize) {
  const area = (/** @type {{width: number, height: number}} */ { width, height }) => width * height;
  const sized = all.flatMap((one) => {
    const size = extent(one.layout, maxTextureSize);
    return size ? [{ ...one, size }] : [];
  });
  /** @type {(typeof sized)[]} */
  const textures = [];
  for (const one of sized.sort((a, b) => b.size.width - a.size.width)) {
    const home = textures.find((others) => {
      const sizes = [...others, one].map(({ size }) => size);
      const together = stackedSize(sizes);
      return together.height <= maxTextureSize && area(together) <= MOST_WASTE * sizes.reduce((sum, size) => sum + area(size), 0);
    });
    if (home) home.push(one);
    else textures.push([one]);
  }
  return textures.filter(({ length }) => length > 1);
}
