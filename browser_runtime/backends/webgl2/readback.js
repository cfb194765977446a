// Readback without stalls: readPixels into a pixel-pack buffer, a fence, and a promise that resolves once it has signalled.
import { EngineError } from "../../errors.js";

/** @import { Device } from "./device.js" */

/**
 * Reads a rectangle of the bound framebuffer's first target.
 * @param {Device} device
 * @param {{x: number, y: number, width: number, height: number}} rectangle
 * @returns {Promise<Float32Array>} [height, width, 4]
 */
export async function readLater(device, { x, y, width, height }) {
  const { gl } = device;
  const bytes = width * height * 16;
  const buffer = gl.createBuffer();
  device.live.buffers += 1;
  gl.bindBuffer(gl.PIXEL_PACK_BUFFER, buffer);
  gl.bufferData(gl.PIXEL_PACK_BUFFER, bytes, gl.STREAM_READ);
  const { format, type } = device.transfer();
  gl.readPixels(x, y, width, height, format, type, 0);
  gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
  try {
    await signalled(device);
    const out = new Float32Array(width * height * 4);
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, buffer);
    gl.getBufferSubData(gl.PIXEL_PACK_BUFFER, 0, new Uint8Array(out.buffer));
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
    return out;
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
