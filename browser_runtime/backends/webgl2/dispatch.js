// Dispatch: a draw with its GL objects: program, texture units, textures and framebuffers.
import { slotOf } from "./tensors.js";
import { sequenceOf } from "./uniform_draws.js";

/** @import { Device } from "./device.js" */
/** @import { Draw } from "./draw.js" */
/** @import { Tensors } from "./tensors.js" */

/**
 * A draw with its GL objects, for each state of the two clocks (Tensors.state): `framebuffers` hold one each, or one for each batch in flight.
 * `textures[state][i]` is bound to `units[i]`. `sequence` draws in the place of one plain draw call.
 * @typedef {{program: WebGLProgram, draw: Draw, units: number[], textures: WebGLTexture[][], framebuffers: WebGLFramebuffer[][],
 *   perSlot: boolean, y: number, width: number, height: number, sequence: import("./uniform_draws.js").Sequence|null}} Dispatch
 */

/** Texture units that every device has. */
const UNITS = 16;

/** Makes the dispatches of an executable, and owns their framebuffers: one for the same render targets, so that draws into them are one pass. */
export class Dispatches {
  /** @param {Device} device @param {Tensors} tensors */
  constructor(device, tensors) {
    this.device = device;
    this.tensors = tensors;
    /** By their render targets. @type {Map<string, WebGLFramebuffer>} */
    this.framebuffers = new Map();
    /** The unit that a texture, or the pair that takes turns, keeps from draw to draw, so that it is bound once. @type {Map<number, number>} */
    this.units = new Map();
  }

  /** @param {Draw} draw @param {WebGLProgram} program @returns {Dispatch} */
  make(draw, program) {
    const { gl } = this.device;
    const units = this.device.programs.units(program, () => this.chooseUnits(draw));
    gl.useProgram(program);
    draw.reads.forEach(({ name }, i) => gl.uniform1i(gl.getUniformLocation(program, `u${name}`), units[i]));
    const states = [0, 1, 2, 3];
    return {
      program, draw, units,
      textures: states.map((state) => draw.reads.map((read) => this.tensors.texture(slotOf(read, state)))),
      framebuffers: states.map(() => []),
      perSlot: draw.writes.some(({ layers }) => layers === "slot"), y: draw.y, width: draw.width, height: draw.height, sequence: sequenceOf(this.tensors, draw),
    };
  }

  /** Each texture's own unit, or the next that the draw leaves free. @param {Draw} draw @returns {number[]} by its reads */
  chooseUnits(draw) {
    /** @type {number[]} */
    const taken = [];
    for (const { slots } of draw.reads) {
      const key = Math.min(...slots.map((slot) => this.tensors.lowered.slots[slot].texture));
      if (!this.units.has(key)) this.units.set(key, this.units.size % UNITS);
      let unit = /** @type {number} */ (this.units.get(key));
      while (taken.includes(unit)) unit = (unit + 1) % UNITS;
      taken.push(unit);
    }
    return taken;
  }

  /** The framebuffer of a dispatch, made when it is first needed. @param {Dispatch} dispatch @param {number} state @param {number} slot */
  framebuffer(dispatch, state, slot) {
    return (dispatch.framebuffers[state][dispatch.perSlot ? slot : 0] ??= this.framebufferOf(dispatch.draw, state, slot));
  }

  /** @param {Draw} draw @param {number} state @param {number} slot */
  framebufferOf({ writes }, state, slot) {
    const { slots } = this.tensors.lowered;
    const targets = writes.flatMap((write) => {
      const { texture } = slots[slotOf(write, state)];
      return write.layers === "slot" ? [{ texture, layer: slot }] : Array.from({ length: write.layers }, (_, layer) => ({ texture, layer }));
    });
    const key = targets.map(({ texture, layer }) => `${texture}.${layer}`).join();
    const made = this.framebuffers.get(key) ?? this.device.createFramebuffer(targets.map(({ texture, layer }) => ({ texture: this.tensors.textures[texture], layer })));
    this.framebuffers.set(key, made);
    return made;
  }

  dispose() {
    for (const framebuffer of this.framebuffers.values()) this.device.deleteFramebuffer(framebuffer);
    this.framebuffers.clear();
  }
}
