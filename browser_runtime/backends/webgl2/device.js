// The device: one WebGL2 context, what it is, and the proof that it renders float32. Programs are cached with it.
import { EngineError } from "../../errors.js";
import { RESIDENT_BYTES, textureBytes } from "./layout.js";
import { Programs } from "./programs.js";

/** @import { Lanes } from "./layout.js" */

/**
 * What is known of a device; plain JSON, stored with each run.
 * @typedef {object} DeviceRecord
 * @property {true} webgl2
 * @property {string} renderer unmasked
 * @property {string} vendor
 * @property {string} version
 * @property {boolean} software drawn by the CPU
 * @property {boolean} float32 proved by rendering a float32 and reading its bits back
 * @property {"rgba32f"|"rgba32ui"} format what tensors are stored as
 * @property {"texture"|"texelFetch"} fetch how kernels read them
 * @property {number} maxDrawBuffers render targets of float32 that a framebuffer is complete with
 * @property {number} maxTextureSize
 * @property {number} maxArrayLayers
 * @property {number} copiedBlockBytes of a uniform block that a copy of texels can fill without the CPU; 0 where none can
 * @property {number} residentBytes of textures for data; a larger data set is streamed
 * @property {string[]} extensions
 * @property {string} userAgent
 */

/**
 * Choices that are made from the device unless a test makes them.
 * @typedef {{format?: "rgba32f"|"rgba32ui", fetch?: "texture"|"texelFetch", maxDrawBuffers?: number, residentBytes?: number,
 *   rows?: import("./fragment_rows.js").RowsWanted, convolution?: "direct"|"im2col"}} DeviceOptions
 */

const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

export class Device {
  /**
   * @param {Record<string, string>} shaders the shader bundle: path below shaders/ -> text
   * @param {DeviceOptions} [options]
   */
  constructor(shaders, options = {}) {
    this.shaders = shaders;
    const gl = createContext();
    this.gl = gl;
    /** @type {(() => void)[]} */
    this.onLost = [];
    this.lost = false;
    /** Whether textures of one lane are read as such, once it is known. @type {boolean|undefined} */
    this.oneLane = undefined;
    gl.canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.lost = true;
      for (const notify of this.onLost) notify();
    });
    const info = gl.getExtension("WEBGL_debug_renderer_info");
    const renderer = String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
    const floats = gl.getExtension("EXT_color_buffer_float") !== null;
    const format = options.format ?? (floats ? "rgba32f" : "rgba32ui");
    const software = SOFTWARE.test(renderer);
    /** GPU objects alive, for the leak tests; bytes are those of textures and of the buffers into which they are copied. */
    this.live = { textures: 0, textureBytes: 0, peakTextureBytes: 0, framebuffers: 0, buffers: 0 };
    this.vao = gl.createVertexArray();
    gl.bindVertexArray(this.vao);
    // Clears and blends would be conversions; dithering would change bits.
    for (const capability of [gl.BLEND, gl.DITHER, gl.DEPTH_TEST, gl.SCISSOR_TEST, gl.CULL_FACE]) gl.disable(capability);
    this.format = /** @type {"rgba32f"|"rgba32ui"} */ (format);
    this.programs = new Programs(gl);
    this.record = /** @type {DeviceRecord} */ ({
      webgl2: true,
      renderer,
      vendor: String(gl.getParameter(info ? info.UNMASKED_VENDOR_WEBGL : gl.VENDOR)),
      version: String(gl.getParameter(gl.VERSION)),
      software,
      float32: true,
      format,
      // Measured: `texture` 1.5 times faster on SwiftShader, `texelFetch` 1.3 times on an H200.
      fetch: options.fetch ?? (software ? "texture" : "texelFetch"),
      maxDrawBuffers: Math.min(options.maxDrawBuffers ?? 8, this.completeTargets(renderer)),
      maxTextureSize: gl.getParameter(gl.MAX_TEXTURE_SIZE),
      maxArrayLayers: gl.getParameter(gl.MAX_ARRAY_TEXTURE_LAYERS),
      // With Direct3D 11 ANGLE takes a copy into a buffer through the CPU, which waits for the GPU.
      copiedBlockBytes: /direct3d/i.test(renderer) ? 0 : gl.getParameter(gl.MAX_UNIFORM_BLOCK_SIZE),
      residentBytes: options.residentBytes ?? RESIDENT_BYTES,
      extensions: gl.getSupportedExtensions() ?? [],
      userAgent: navigator.userAgent,
    });
    try {
      this.proveFloat32();
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  /** @returns {import("./shader_source.js").Dialect} */
  get dialect() {
    return { format: this.record.format, fetch: this.record.fetch };
  }

  /**
   * A texture array, contents zero.
   * @param {{width: number, height: number, layers: number, lanes?: Lanes, numbers?: import("./layout.js").Numbers}} size
   * @returns {WebGLTexture}
   */
  createTexture(size) {
    const { gl } = this;
    const { width, height, layers, lanes = 4, numbers = "float" } = size;
    const texture = gl.createTexture();
    if (!texture) throw this.failure();
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, texture);
    const [one, four] = this.format === "rgba32f" ? [gl.R32F, gl.RGBA32F] : [gl.R32UI, gl.RGBA32UI];
    const format = numbers === "int" ? gl.R32I : numbers === "uint" ? gl.R32UI : lanes === 1 ? one : four;
    gl.texStorage3D(gl.TEXTURE_2D_ARRAY, 1, format, width, height, layers);
    // Texels are numbers: no filter may mix them, no address may wrap.
    for (const filter of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D_ARRAY, filter, gl.NEAREST);
    for (const wrap of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D_ARRAY, wrap, gl.CLAMP_TO_EDGE);
    this.live.textures += 1;
    this.live.textureBytes += textureBytes(size);
    this.live.peakTextureBytes = Math.max(this.live.peakTextureBytes, this.live.textureBytes);
    return texture;
  }

  /** @param {WebGLTexture} texture @param {{width: number, height: number, layers: number, lanes?: Lanes}} size */
  deleteTexture(texture, size) {
    this.gl.deleteTexture(texture);
    this.live.textures -= 1;
    this.live.textureBytes -= textureBytes(size);
  }

  /** A buffer into which texels are copied, to be read as a uniform block. @param {number} bytes @returns {WebGLBuffer} */
  createBuffer(bytes) {
    const { gl } = this;
    const buffer = gl.createBuffer();
    if (!buffer) throw this.failure();
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, buffer);
    // "Dynamic" ANGLE puts into the CPU's memory, from which a product reads its rows half as fast as from textures.
    gl.bufferData(gl.PIXEL_PACK_BUFFER, bytes, gl.STATIC_COPY);
    gl.bindBuffer(gl.PIXEL_PACK_BUFFER, null);
    this.live.buffers += 1;
    this.live.textureBytes += bytes;
    this.live.peakTextureBytes = Math.max(this.live.peakTextureBytes, this.live.textureBytes);
    return buffer;
  }

  /** @param {WebGLBuffer} buffer @param {number} bytes */
  deleteBuffer(buffer, bytes) {
    this.gl.deleteBuffer(buffer);
    this.live.buffers -= 1;
    this.live.textureBytes -= bytes;
  }

  /**
   * A framebuffer with the given layers as render targets 0, 1, ...
   * @param {{texture: WebGLTexture, layer: number}[]} targets
   * @returns {WebGLFramebuffer}
   */
  createFramebuffer(targets) {
    const { gl } = this;
    const framebuffer = gl.createFramebuffer();
    if (!framebuffer) throw this.failure();
    gl.bindFramebuffer(gl.FRAMEBUFFER, framebuffer);
    targets.forEach(({ texture, layer }, i) => gl.framebufferTextureLayer(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0 + i, texture, 0, layer));
    gl.drawBuffers(targets.map((_, i) => gl.COLOR_ATTACHMENT0 + i));
    this.live.framebuffers += 1;
    return framebuffer;
  }

  /** @param {WebGLFramebuffer} framebuffer */
  deleteFramebuffer(framebuffer) {
    this.gl.deleteFramebuffer(framebuffer);
    this.live.framebuffers -= 1;
  }

  /**
   * Format and type under which texels of tensors travel between memory and textures, and the array view they need.
   * @param {ArrayBufferLike} [buffer] @param {Lanes} [lanes]
   */
  transfer(buffer, lanes = 4) {
    const { gl } = this;
    return this.format === "rgba32f"
      ? { format: lanes === 1 ? gl.RED : gl.RGBA, type: gl.FLOAT, view: buffer && new Float32Array(buffer) }
      : { format: lanes === 1 ? gl.RED_INTEGER : gl.RGBA_INTEGER, type: gl.UNSIGNED_INT, view: buffer && new Uint32Array(buffer) };
  }

  /**
   * The lanes with which the texels of the bound framebuffer are read: 4 are always legal, one alone where the device says so, which then need not
   * convert them. Asked once, since it waits for the GPU process.
   * @param {Lanes} lanes of its texture @returns {Lanes}
   */
  readLanes(lanes) {
    if (lanes === 4) return 4;
    const { gl } = this;
    const { format, type } = this.transfer(undefined, 1);
    this.oneLane ??= gl.getParameter(gl.IMPLEMENTATION_COLOR_READ_FORMAT) === format && gl.getParameter(gl.IMPLEMENTATION_COLOR_READ_TYPE) === type;
    return this.oneLane ? 1 : 4;
  }

  /** Throws what the driver reports, if anything. Slow (0.2 ms): for set-up and for telemetry reads. */
  check() {
    const { gl } = this;
    if (this.lost || gl.isContextLost()) throw new EngineError("context_lost", "the WebGL context was lost: the GPU process or its driver gave up");
    const error = gl.getError();
    if (error === gl.NO_ERROR) return;
    const names = ["INVALID_ENUM", "INVALID_VALUE", "INVALID_OPERATION", "INVALID_FRAMEBUFFER_OPERATION", "OUT_OF_MEMORY", "CONTEXT_LOST_WEBGL"];
    const name = names.find((n) => /** @type {any} */ (gl)[n] === error) ?? `0x${error.toString(16)}`;
    throw new EngineError(name === "OUT_OF_MEMORY" ? "too_large" : "gl_error", `WebGL reports ${name}`, { detail: { error: name } });
  }

  /**
   * Throws where the GPU process has died since, however little the browser knows of it: its reads give zeros then, without an error, until
   * the loss arrives as an event. A number that comes back shows that what was read before it was real.
   */
  checkAlive() {
    this.check();
    const { gl } = this;
    const size = { width: 1, height: 1, layers: 1 };
    const texture = this.createTexture(size);
    const sent = new Float32Array([1, 2, 3, 4]);
    const { format, type, view } = this.transfer(sent.buffer);
    gl.texSubImage3D(gl.TEXTURE_2D_ARRAY, 0, 0, 0, 0, 1, 1, 1, format, type, /** @type {ArrayBufferView} */ (view));
    const framebuffer = this.createFramebuffer([{ texture, layer: 0 }]);
    const got = new Float32Array(4);
    gl.readPixels(0, 0, 1, 1, format, type, /** @type {ArrayBufferView} */ (this.transfer(got.buffer).view));
    this.deleteFramebuffer(framebuffer);
    this.deleteTexture(texture, size);
    if (!got.every((value, i) => value === sent[i])) throw new EngineError("context_lost", "the GPU process died: what was read from it is not real");
  }

  failure() {
    return this.gl.isContextLost()
      ? new EngineError("context_lost", "the WebGL context was lost: the GPU process or its driver gave up")
      : new EngineError("gl_error", "WebGL could not create an object");
  }

  /** How many float32 render targets a framebuffer is complete with: asked by making one. @param {string} renderer for the message */
  completeTargets(renderer) {
    const { gl } = this;
    const most = Math.min(8, gl.getParameter(gl.MAX_DRAW_BUFFERS), gl.getParameter(gl.MAX_COLOR_ATTACHMENTS));
    for (let count = most; count >= 1; count--) {
      const size = { width: 1, height: 1, layers: count };
      const texture = this.createTexture(size);
      const framebuffer = this.createFramebuffer(Array.from({ length: count }, (_, layer) => ({ texture, layer })));
      const complete = gl.checkFramebufferStatus(gl.FRAMEBUFFER) === gl.FRAMEBUFFER_COMPLETE;
      this.deleteFramebuffer(framebuffer);
      this.deleteTexture(texture, size);
      if (complete) return count;
    }
    throw new EngineError(
      "no_float_targets",
      `WebGL2 is here (${renderer}), but it can render neither to float32 (EXT_color_buffer_float) nor to RGBA32UI textures`,
    );
  }

  /** Renders a third, whose 24 bits a half float could not hold, and reads it back. */
  proveFloat32() {
    const { gl } = this;
    const size = { width: 1, height: 1, layers: 1 };
    const texture = this.createTexture(size);
    const framebuffer = this.createFramebuffer([{ texture, layer: 0 }]);
    const uint = this.format === "rgba32ui";
    const program = this.programs.now({
      text:
        `#version 300 es\nprecision highp float;\nuniform float uOne;\nout highp ${uint ? "uvec4" : "vec4"} o;\n` +
        `void main() { vec4 v = vec4(uOne / 3., -uOne / 3., uOne * 16777215., uOne * 1e-30); o = ${uint ? "floatBitsToUint(v)" : "v"}; }\n`,
    });
    gl.useProgram(program);
    gl.uniform1f(gl.getUniformLocation(program, "uOne"), 1);
    gl.viewport(0, 0, 1, 1);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    const bytes = new ArrayBuffer(16);
    const { format, type, view } = this.transfer(bytes);
    gl.readPixels(0, 0, 1, 1, format, type, /** @type {ArrayBufferView} */ (view));
    this.deleteFramebuffer(framebuffer);
    this.deleteTexture(texture, size);
    const got = [...new Float32Array(bytes)];
    /** What was rendered to prove float32, and what came back. */
    this.proof = { rendered: ["1/3", "-1/3", "2^24 - 1", "1e-30"], read: got };
    const wanted = [1 / 3, -1 / 3, 16777215, 1e-30].map(Math.fround);
    // Division may round either way: 1 ULP. A half float is off by 2^-11.
    if (!got.every((x, i) => Math.abs(x - wanted[i]) <= Math.abs(wanted[i]) * 2 ** -23)) {
      throw new EngineError("no_float_targets", `rendering 1/3, -1/3, 2^24 - 1 and 1e-30 to ${this.format} gave ${got.join(", ")}: not float32`);
    }
  }

  dispose() {
    this.programs.dispose();
    this.gl.deleteVertexArray(this.vao);
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }
}

/** @returns {WebGL2RenderingContext} */
function createContext() {
  const canvas = typeof OffscreenCanvas === "function" ? new OffscreenCanvas(1, 1) : /** @type {any} */ (globalThis).document.createElement("canvas");
  const gl = canvas.getContext("webgl2", {
    alpha: false, depth: false, stencil: false, antialias: false, powerPreference: "high-performance", failIfMajorPerformanceCaveat: false,
  });
  if (!gl) {
    throw new EngineError(
      "no_webgl2",
      "this browser gives no WebGL2 context. Look at chrome://gpu; on a machine without a GPU start Chromium with --use-angle=swiftshader --enable-unsafe-swiftshader, " +
        "with one install its driver's Vulkan or EGL libraries (libvulkan1 or libegl1)",
    );
  }
  return gl;
}
