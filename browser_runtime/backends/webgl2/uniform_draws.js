// Uniform draws: the GL calls of products that take rows from uniform blocks. The rows lie in one texture line for each row group; what draws them
// there fills a buffer, and the product is a draw for each group with its part of the buffer.

/** @import { Draw } from "./draw.js" */
/** @import { Tensors } from "./tensors.js" */

const BINDING = 1; // of the block; 0 is that of a step's scalars

/**
 * A dispatch that is more than a draw call: `draw` makes it, once program, viewport, framebuffer and textures are set, and returns how many GL calls it
 * took; `bind` binds what a draw call needs besides, for one that is not looked at.
 * @typedef {{bind: () => void, draw: () => number}} Sequence
 */

/** What a dispatch runs instead of one plain draw call, where it does. @param {Tensors} tensors @param {Draw} draw @returns {Sequence|null} */
export function sequenceOf(tensors, draw) {
  if (draw.fills) return new Fill(tensors, draw, draw.fills);
  return draw.uniform ? new GroupByGroup(tensors, draw.uniform) : null;
}

/** @param {Tensors} tensors @param {import("./draw.js").Lines} lines */
const bufferOf = ({ buffers, lowered }, { slot }) => buffers[lowered.slots[slot].texture];

/** Draws lines and copies them into the buffer, one part behind the other. @implements {Sequence} */
class Fill {
  /** @param {Tensors} tensors @param {Draw} draw @param {import("./draw.js").Lines} lines */
  constructor(tensors, { width, height }, lines) {
    this.gl = tensors.gl;
    this.buffer = bufferOf(tensors, lines);
    this.width = width;
    this.height = height;
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
  /** @param {Tensors} tensors @param {import("./draw.js").Lines} lines */
  constructor(tensors, lines) {
    this.gl = tensors.gl;
    this.buffer = bufferOf(tensors, lines);
    this.groups = lines.groups;
    this.bytes = lines.texels * 16;
  }

  bind() {
    this.gl.bindBufferRange(this.gl.UNIFORM_BUFFER, BINDING, this.buffer, 0, this.bytes);
  }

  draw() {
    const { gl } = this;
    for (let group = 0; group < this.groups; group++) {
      gl.bindBufferRange(gl.UNIFORM_BUFFER, BINDING, this.buffer, group * this.bytes, this.bytes);
      gl.drawArrays(gl.TRIANGLES, 3 * group, 3);
    }
    return 2 * this.groups;
  }
}
