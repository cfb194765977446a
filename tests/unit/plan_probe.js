// plan_probe.js: plans, lowered plans, layouts and arenas as plain values, for test_plan.py. No GL.
import { Arena } from "../../browser_runtime/backends/webgl2/arena.js";
import { extent, filled, layoutOf, pack, rowsPerFragment, texelOf, unpack } from "../../browser_runtime/backends/webgl2/layout.js";
import { gatherDraws } from "../../browser_runtime/backends/webgl2/order.js";
import { lower } from "../../browser_runtime/backends/webgl2/lower.js";
import { validateSpec } from "../../browser_runtime/nn/spec.js";
import { buildPlan } from "../../browser_runtime/plan/plan.js";
import { estimate } from "../../browser_runtime/train/estimate.js";

export { rowsPerFragment };

/** @param {any} spec @param {any} labels */
const planOf = (spec, labels) => buildPlan(validateSpec(spec), { labels });

/**
 * The groups of each phase: kernel, ops, and the tensors that are stored.
 * @param {any} spec @param {any} labels
 */
export function groups(spec, labels) {
  const { phases } = planOf(spec, labels);
  return Object.fromEntries(
    Object.entries(phases).map(([name, phase]) => [
      name,
      phase.groups.map(({ kernel, ops, outputs }) => [kernel, ops.map((op) => op.type), [...new Set(Object.values(outputs))]]),
    ]),
  );
}

/**
 * A plan lowered for a device.
 * @param {any} spec @param {any} labels @param {any} limits @param {any} rows
 */
export function lowered(spec, labels, limits, rows) {
  const plan = planOf(spec, labels);
  const { textures, slots, training, bytes, places, phases, step, gathers, reductions, sizes } = lower(plan, limits, rows);
  const all = { ...phases, train: [step.batch, step.end], epoch: [gathers.epoch], stage: [gathers.stage], reductions: [Object.values(reductions).map(({ draw }) => draw)] };
  return {
    textures,
    slots,
    bytes,
    sizes,
    order: training.groups.map(({ kernel, ops, inputs, outputs }) => ({
      kernel, inputs: Object.values(inputs), outputs: Object.values(outputs), parameter: ops.find(({ type }) => type === "update")?.inputs.w ?? null,
    })),
    lifetimes: Object.fromEntries(training.lifetimes),
    places: Object.fromEntries([...places].map(([name, { slots, layout }]) => [name, { slots, layout }])),
    draws: Object.entries(all).flatMap(([phase, list]) =>
      list.flat().map(({ source, reads, writes, y, width, height, fills = null, uniform = null }) => ({
        phase, shader: source.shader, y, width, height, domain: source.domain, fills, uniform: uniform && partsOf(uniform),
        splits: source.defines.SPLITS ?? 0, takes: phase === "train" && uniform ? slotOf(places, uniform) : null,
        reads: reads.map(({ slots }) => slots), computed: source.computed.map(({ name }) => name),
        lines: source.reads.map(({ name, sampler = name, layout, region = { y: 0, width: 0 } }) => ({
          slot: reads.find((read) => read.name === sampler)?.slots[0], y: region.y, height: filled(layout, region.width).height,
        })),
        writes: writes.map(({ slots, layers }, i) => ({ slots, layers, targets: source.writes[i].targets })),
      })),
    ),
  };
}

/**
 * The names of draws in the order that gatherDraws() gives; a slot is a texture of its own.
 * @param {[string, number[], number, boolean][]} given name, slots that it reads, the one that it writes, and whether it is free
 */
export function gathered(given) {
  const draws = given.map(([name, reads, write]) => ({ name, reads: reads.map((slot) => ({ slots: [slot, slot] })), writes: [{ slots: [write, write] }] }));
  const free = new Set(draws.filter((_, i) => given[i][3]));
  return gatherDraws(/** @type {any} */ (draws), /** @type {any} */ (free), (slot) => slot).map((draw) => /** @type {any} */ (draw).name);
}

/** Without what the kernel reads there. @param {import("../../browser_runtime/backends/webgl2/draw.js").Parts} parts */
const partsOf = ({ slot, texels, groups, perLine, y, pitch }) => ({ slot, texels, groups, perLine, y, pitch });

/** Where that lies which a draw takes from a buffer. @param {Map<string, any>} places @param {any} uniform @returns {number} */
const slotOf = (places, uniform) => [...places.values()].find(({ layout }) => layout === uniform.layout).slots[0];

/** Places tensors in a fresh arena, phase after phase. @param {any[][]} phases @param {number} maxSize */
export function share(phases, maxSize) {
  const arena = new Arena(maxSize);
  /** @type {number[]} */
  const shared = [];
  const placed = phases.map((tensors) =>
    Object.fromEntries(arena.share(tensors.map(({ matrix, ...rest }) => ({ ...rest, layout: layoutOf(matrix, maxSize) })), shared)));
  return { placed, layouts: phases.map((tensors) => tensors.map(({ matrix }) => layoutOf(matrix, maxSize))), slots: arena.slots, bytes: arena.bytes };
}

/** There and back. @param {any} matrix @param {any} data @param {any} bias @param {number} maxSize @param {1|4} [lanes] */
export function roundTrip(matrix, data, bias, maxSize, lanes) {
  const layout = layoutOf(matrix, maxSize);
  const size = /** @type {{width: number, height: number}} */ (extent(layout, maxSize));
  const texture = lanes ? { ...size, lanes } : size;
  const texels = pack(layout, data.data, bias?.data ?? null, texture);
  const back = unpack(layout, texels, texture);
  const rows = Array.from({ length: layout.groups * layout.layers }, (_, row) => texelOf(layout, texture, row));
  return { layout, texture, texels, rows, data: back.data, bias: back.bias };
}

/** @param {any} matrix @param {number} maxSize */
export function size(matrix, maxSize) {
  const layout = layoutOf(matrix, maxSize);
  return { layout, extent: extent(layout, maxSize) };
}

/** @param {any} spec @param {any} shapes @param {any} [limits] */
export function tryEstimate(spec, shapes, limits) {
  try {
    return { estimate: estimate(spec, shapes, limits ?? undefined) };
  } catch (error) {
    const { name, code, field, message } = /** @type {any} */ (error);
    return { error: { name, code, field, message } };
  }
}

/** @param {any} spec @param {any} labels @param {any} limits @param {any} rows */
export function tryLower(spec, labels, limits, rows) {
  try {
    const { bytes, streamed, sizes } = lower(planOf(spec, labels), limits, rows);
    return { bytes, streamed, sizes };
  } catch (error) {
    const { name, code, field, message } = /** @type {any} */ (error);
    return { error: { name, code, field, message } };
  }
}
