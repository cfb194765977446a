// Readback: texels of textures as numbers. Without stalls by readPixels into a pixel-pack buffer, a fence, and a promise that resolves once it has signalled.
import { EngineError } from "../../errors.js";

/** @import { Device } from "./device.js" */
/** @import { Lanes } from "./layout.js" */

/** @typedef {{x: number, y: number, width: number, height: number}} Rectangle */

/** Of numbers that were read with 4 lanes a texel. @param {Float32Array} numbers */
const firstLanes = (numbers) => Float32Array.from({ length: numbers.length / 4 }, (_, i) => numbers[4 * i]);

/**
 * Reads a rectangle of a layer of a texture, and waits for it.
 * @param {Device} device @param {{texture: WebGLTexture, layer: number}} target @param {Rectangle} rectangle @param {Lanes} lanes of the texture
 * @returns {Float32Array} [height, width, lanes]
 */
export function readNow(device, target, { x, y, width, height }, lanes) {
  const framebuffer = device.createFramebuffer([target]);
  const read = device.readLanes(lanes);
  const out = new Float32Array(width * height * read);
  const { format, type, view } = device.transfer(out.buffer, read);
  device.gl.readPixels(x, y, width, height, format, type, /** @type {ArrayBufferView} */ (view));
  device.deleteFramebuffer(framebuffer);
  return read === lanes ? out : firstLanes(out);
}

/**
 * The same of a texture of bits, whose texels have one lane.
 * @param {Device} device @param {{texture: WebGLTexture, layer: number}} target @param {Rectangle} rectangle @returns {Uint32Array} [height, width]
 */
export function readBits(device, target, { x, y, width, height }) {
  const { gl } = device;
  const framebuffer = device.createFramebuffer([target]);
  const texels = new Uint32Array(width * height * 4);
  gl.readPixels(x, y, width, height, gl.RGBA_INTEGER, gl.UNSIGNED_INT, texels);
  device.deleteFramebuffer(framebuffer);
  return Uint32Array.from({ length: width * height }, (_, i) => texels[4 * i]);
}

/**
 * Reads a rectangle of the bound framebuffer's first target.
 * @param {Device} device @param {Rectangle} rectangle @param {Lanes} lanes of its texture
 * @returns {Promise<Float32Array>} [height, width, lanes]
 */
export async function readLater(device, { x, y, width, height }, lanes) {
  const { gl } = device;
  const read = device.readLanes(lanes);
  const numbers = width * height * read;
  const buffer = gl.createBuffer();
  device.live.buffers += 1;
  gl.bindBuffer(gl.PIXEL_PACK_BUFFER, buffer);
  gl.bufferData(gl.PIXEL_PACK_BUFFER, 4 * numbers, gl.STREAM_READ);
  const { format, type } = device.transfer(undefined, read);
  gl.readPixels(x, y, width, height, format, type, 0);
  gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
  try {
    await signalled(device);
    const out = new Float32Array(numbers);
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, buffer);
    gl.getBufferSubData(gl.PIXEL_PACK_BUFFER, 0, new Uint8Array(out.buffer));
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
    return read === lanes ? out : firstLanes(out);
  } finally {
    gl.deleteBuffer(buffer);
    device.live.buffers -= 1;
  }
}

/**
 * Resolves once the GPU has done all that was submitted so far. Fences never signal within the task that made them, so it yields;
 * by a timer, since a spinning thread would take a core from a software renderer.
 * @param {Device} device
 */
export async function signalled({ gl }) {
  const sync = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
  gl.flush();
  const lost = () => new EngineError("context_lost", "the WebGL context was lost: the GPU process or its driver gave up");
  if (!sync) throw lost();
  try {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      const status = gl.getSyncParameter(sync, gl.SYNC_STATUS);
      if (status === gl.SIGNALED) return;
      if (status === null || gl.isContextLost()) throw lost();
    }
  } finally {
    gl.deleteSync(sync);
  }
}
