// Draw: one draw call as data: the kernel's source, and which textures it reads and writes.
import { EngineError } from "../../errors.js";
import { MAX_TRIPS } from "./kernels/common.js";
import { filled } from "./layout.js";

/** @import { Arena } from "./arena.js" */
/** @import { Layout } from "./layout.js" */
/** @import { ComputedRead, KernelSource } from "./shader_source.js" */

/**
 * Where a tensor lives: its texture for even and odd steps (different for what ping-pongs), and how.
 * Steps and batches are the same unless gradients of several batches are added up: `clock` says which of them changes textures.
 * @typedef {{slots: [number, number], layout: Layout, fed: boolean, clock?: "batch", gated?: Gated}} Place
 */

/** What a gradient is stored as instead: gated_gradients.js. @typedef {{gates: Place, factors: Place}} Gated */

/**
 * Uniform blocks in the buffer beside a texture, one of so many `texels` for each row group: `perLine` of them in a line of `pitch` texels, from line `y` on.
 * @typedef {{slot: number, texels: number, groups: number, perLine: number, y: number, pitch: number}} Blocks
 */

/**
 * One draw call, or one for each row group. `reads` and `writes` give arena slots for even and odd steps; `layers` says which layers of the slot are render targets,
 * "slot" the layer of the batch in flight.
 * @typedef {object} Draw
 * @property {KernelSource} source
 * @property {{name: string, slots: [number, number], clock?: "batch"}[]} reads
 * @property {{slots: [number, number], layers: number|"slot", clock?: "batch"}[]} writes
 * @property {number} y first line of the viewport @property {number} width @property {number} height
 * @property {{slot: number, width: number, height: number}} [fills] so much of its texture is copied into the buffer then
 * @property {Blocks} [uniform] each row group is a draw, which has its uniform block
 */

/** Draw calls of draws. @param {Draw[]} draws */
export const drawCalls = (draws) => draws.reduce((sum, { uniform }) => sum + (uniform?.groups ?? 1), 0);

/**
 * A tensor that a kernel reads under a name of its own; where it is not stored, what it is computed from.
 * @typedef {{name: string, place: Place, computed?: {kind: "affine"|"affine_grad_input", relu: boolean, inner: KernelRead[]}}} KernelRead
 */

/** The reads that are fetches, those behind computed ones first. @param {KernelRead[]} reads @param {KernelRead[]} [found] @returns {KernelRead[]} */
function fetched(reads, found = []) {
  for (const read of reads) {
    if (read.computed) fetched(read.computed.inner, found);
    else found.push(read);
  }
  return found;
}

/** For each of the reads, the name of the first that fetches from the same textures: they share its sampler. @param {Arena} arena @param {KernelRead[]} reads */
function samplersOf({ slots }, reads) {
  /** By textures. @type {Map<string, string>} */
  const samplers = new Map();
  return reads.map(({ name, place: { slots: [even, odd] } }) => {
    const textures = `${slots[even].texture} ${slots[odd].texture}`;
    const sampler = samplers.get(textures) ?? name;
    samplers.set(textures, sampler);
    return sampler;
  });
}

/** Computed reads, each behind those that it is computed from. @param {KernelRead[]} reads @param {ComputedRead[]} [found] @returns {ComputedRead[]} */
function computedOf(reads, found = []) {
  for (const { name, place, computed } of reads) {
    if (!computed) continue;
    computedOf(computed.inner, found);
    found.push({ name, layout: place.layout, kind: computed.kind, relu: computed.relu });
  }
  return found;
}

/**
 * @param {Arena} arena @param {string} kernel name of its file @param {any} parts as Lowering.draw takes them
 * @returns {Draw}
 * @throws {EngineError} too_large where one fragment would loop too often
 */
export function makeDraw(arena, kernel, { trips, defines, reads, writes, domain, fills, uniform }) {
  const target = arena.slots[writes[0].slots[0]];
  const fetches = fetched(reads);
  const samplers = samplersOf(arena, fetches);
  if (trips > MAX_TRIPS) {
    throw new EngineError("too_large", `model: ${kernel} would loop ${trips} times in one fragment; at most ${MAX_TRIPS} are safe on every driver`, { field: "model" });
  }
  return {
    source: {
      shader: `${kernel}.frag.glsl`,
      defines,
      reads: fetches.map(({ name, place }, i) => {
        const { texture, y, width: line } = arena.slots[place.slots[0]];
        const { width, height, lanes, numbers } = arena.textures[texture];
        return { name, sampler: samplers[i], layout: place.layout, width, height, region: { y, width: line }, fed: place.fed, numbers, lanes };
      }),
      computed: computedOf(reads),
      uniform: uniform && { name: uniform.alias, layout: uniform.layout, groups: uniform.groups },
      writes: writes.map((/** @type {any} */ { name, slots, layers }) => ({ name, targets: layers === "slot" ? 1 : layers, numbers: arena.slots[slots[0]].numbers })),
      domain,
      width: target.width,
      y: target.y,
    },
    reads: fetches.filter(({ name }, i) => samplers[i] === name).map(({ name, place }) => ({ name, slots: place.slots, clock: place.clock })),
    writes: writes.map((/** @type {any} */ { slots, layers, clock }) => ({ slots, layers, clock })),
    y: target.y,
    ...filled(domain, target.width),
    fills,
    uniform,
  };
}
