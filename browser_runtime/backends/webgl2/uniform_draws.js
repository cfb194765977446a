// Uniform draws: the GL calls of products that take rows, or columns, from uniform blocks. What draws these into a texture fills the buffer beside it, and the
// product is a draw for each row group with its block of the buffer.

/** @import { Draw } from "./draw.js" */
/** @import { Tensors } from "./tensors.js" */

const TEXEL_BYTES = 16;
const BINDING = 1; // of the block; 0 is that of a step's scalars

/**
 * A dispatch that is more than a draw call: `draw` makes it, once program, viewport, framebuffer and textures are set, and returns how many GL calls it
 * took; `bind` binds what a draw call needs besides, for one that is not looked at.
 * @typedef {{bind: () => void, draw: () => number}} Sequence
 */

/** What a dispatch runs instead of one plain draw call, where it does. @param {Tensors} tensors @param {Draw} draw @returns {Sequence|null} */
export function sequenceOf(tensors, draw) {
  if (draw.fills) return new Fill(tensors, draw.fills);
  return draw.uniform ? new GroupByGroup(tensors, draw.uniform) : null;
}

/** @param {Tensors} tensors @param {{slot: number}} texture beside which it is */
const bufferOf = ({ buffers, lowered }, { slot }) => buffers[lowered.slots[slot].texture];

/** Draws, and copies the texture's lines into the buffer, one behind the other. @implements {Sequence} */
class Fill {
  /** @param {Tensors} tensors @param {{slot: number, width: number, height: number}} lines */
  constructor(tensors, lines) {
    this.gl = tensors.gl;
    this.buffer = bufferOf(tensors, lines);
    this.width = lines.width;
    this.height = lines.height;
    const { format, type } = tensors.device.transfer();
    this.format = format;
    this.type = type;
  }

  bind() {}

  draw() {
    const { gl } = this;
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, this.buffer);
    gl.readPixels(0, 0, this.width, this.height, this.format, this.type, 0);
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
    return 4;
  }
}

/** Draws row group after row group, each the band of its vertices (programs.js). @implements {Sequence} */
class GroupByGroup {
  /** @param {Tensors} tensors @param {import("./draw.js").Blocks} blocks */
  constructor(tensors, blocks) {
    const { texels, groups, perLine, y, pitch } = blocks;
    this.gl = tensors.gl;
    this.buffer = bufferOf(tensors, blocks);
    this.bytes = texels * TEXEL_BYTES;
    this.offsets = Array.from({ length: groups }, (_, group) => ((y + Math.floor(group / perLine)) * pitch + (group % perLine) * texels) * TEXEL_BYTES);
  }

  bind() {
    this.gl.bindBufferRange(this.gl.UNIFORM_BUFFER, BINDING, this.buffer, 0, this.bytes);
  }

  draw() {
    const { gl } = this;
    for (let group = 0; group < this.offsets.length; group++) {
      gl.bindBufferRange(gl.UNIFORM_BUFFER, BINDING, this.buffer, this.offsets[group], this.bytes);
      gl.drawArrays(gl.TRIANGLES, 3 * group, 3);
    }
    return 2 * this.offsets.length;
  }
}
