// Programs: compiled in parallel, cached by their final text, with errors that name the source file, line and column.
import { EngineError } from "../../errors.js";

/** @import { Origin } from "./shader_source.js" */

/** What a program is made of. @typedef {{text: string, origins?: Origin[], bands?: number}} Kernel its fragment shader, where the lines of that came from, and
 * how many draw calls cover the viewport */

// One triangle over the whole viewport, without buffers.
const VERTEX = `#version 300 es
void main() { gl_Position = vec4(gl_VertexID == 1 ? 3. : -1., gl_VertexID == 2 ? 3. : -1., 0., 1.); }
`;

/**
 * Three vertices for each band of two lines, so that a draw call of one needs no viewport of its own: a GPU waits for what it draws before it changes that.
 * The third corner lies far to the right of the viewport, where the triangle is nearly as high as its band: all centres of both lines are inside.
 * @param {number} bands
 */
const bandsVertex = (bands) => `#version 300 es
void main() {
  int band = gl_VertexID / 3, corner = gl_VertexID - 3 * band;
  gl_Position = vec4(corner == 1 ? 15. : -1., float(2 * band + corner) / ${bands}. - 1., 0., 1.);
}
`;

export class Programs {
  /** @param {WebGL2RenderingContext} gl */
  constructor(gl) {
    this.gl = gl;
    this.parallel = gl.getExtension("KHR_parallel_shader_compile");
    /** @type {Map<string, {program: WebGLProgram, fragment: WebGLShader, origins: Origin[], linked: boolean}>} */
    this.cache = new Map();
    /** Vertex shaders, by the bands that they draw. @type {Map<number, WebGLShader>} */
    this.vertices = new Map();
    /** @type {WeakMap<WebGLProgram, number[]>} */
    this.samplers = new WeakMap();
    this.vertex = this.vertexShader(1);
  }

  /** @param {number} bands @returns {WebGLShader} */
  vertexShader(bands) {
    const made = this.vertices.get(bands) ?? this.shader(this.gl.VERTEX_SHADER, bands === 1 ? VERTEX : bandsVertex(bands));
    this.vertices.set(bands, made);
    return made;
  }

  /** Starts compiling; `finish` waits. What was compiled before costs nothing. @param {Kernel} kernel */
  start(kernel) {
    const { text, origins = [], bands = 1 } = kernel;
    if (this.cache.has(keyOf(kernel))) return;
    const { gl } = this;
    const fragment = this.shader(gl.FRAGMENT_SHADER, text);
    const program = gl.createProgram();
    gl.attachShader(program, this.vertexShader(bands));
    gl.attachShader(program, fragment);
    gl.linkProgram(program);
    this.cache.set(keyOf(kernel), { program, fragment, origins, linked: false });
  }

  /**
   * The program of a kernel that was started, without blocking where the driver compiles in parallel.
   * @param {Kernel} kernel
   * @returns {Promise<WebGLProgram>}
   */
  async finish(kernel) {
    const { program, linked } = this.entry(kernel);
    while (!linked && this.parallel && !this.gl.getProgramParameter(program, this.parallel.COMPLETION_STATUS_KHR)) await new Promise((resolve) => setTimeout(resolve, 1));
    return this.now(kernel);
  }

  /** Its program, compiled now if need be. @param {Kernel} kernel @returns {WebGLProgram} */
  now(kernel) {
    this.start(kernel);
    const entry = this.entry(kernel);
    if (!entry.linked) {
      this.verify(kernel, entry);
      entry.linked = true;
    }
    return entry.program;
  }

  /**
   * The texture units of a program's reads: chosen when it is first used, and kept, since its samplers hold them.
   * @param {WebGLProgram} program @param {() => number[]} choose
   */
  units(program, choose) {
    const units = this.samplers.get(program) ?? choose();
    this.samplers.set(program, units);
    return units;
  }

  /** @param {Kernel} kernel */
  entry(kernel) {
    const entry = this.cache.get(keyOf(kernel));
    if (!entry) throw new Error("finish() before start()");
    return entry;
  }

  /** @param {Kernel} kernel @param {{program: WebGLProgram, fragment: WebGLShader, origins: Origin[]}} entry */
  verify(kernel, { program, fragment, origins }) {
    const { gl } = this;
    if (gl.getProgramParameter(program, gl.LINK_STATUS)) {
      ["Step", "Rows"].forEach((name, binding) => {
        const block = gl.getUniformBlockIndex(program, name);
        if (block !== gl.INVALID_INDEX) gl.uniformBlockBinding(program, block, binding);
      });
      return;
    }
    this.cache.delete(keyOf(kernel));
    // A GPU process that has died says no to everything, also of the vertex shader, which always compiles.
    if (gl.isContextLost() || !gl.getShaderParameter(this.vertex, gl.COMPILE_STATUS)) {
      throw new EngineError("context_lost", "the WebGL context was lost while compiling");
    }
    const log = gl.getShaderInfoLog(fragment) || gl.getProgramInfoLog(program) || "no message";
    throw new EngineError("shader_error", explain(log, kernel.text, origins), { detail: { log } });
  }

  /** @param {number} kind @param {string} text */
  shader(kind, text) {
    const { gl } = this;
    const shader = gl.createShader(kind);
    if (!shader) throw new EngineError("context_lost", "the WebGL context was lost while compiling");
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    return shader;
  }

  dispose() {
    for (const { program, fragment } of this.cache.values()) {
      this.gl.deleteProgram(program);
      this.gl.deleteShader(fragment);
    }
    for (const shader of this.vertices.values()) this.gl.deleteShader(shader);
    this.cache.clear();
  }
}

/** @param {Kernel} kernel */
const keyOf = ({ text, bands = 1 }) => (bands === 1 ? text : `${bands} bands: ${text}`);

/**
 * The first error of a compiler's log, with file, line, and a caret where the log quotes a token.
 * @param {string} log @param {string} text @param {Origin[]} origins
 */
export function explain(log, text, origins) {
  const error = log.match(/ERROR:\s*\d+:(\d+):\s*(?:'([^']*)'\s*:\s*)?(.*)/);
  if (!error) return log.trim();
  const [, number, token, message] = error;
  const source = text.split("\n")[Number(number) - 1] ?? "";
  const { file, line } = origins[Number(number) - 1] ?? { file: "(generated)", line: Number(number) };
  const column = token ? source.indexOf(token) : -1;
  const caret = column >= 0 ? `\n  ${" ".repeat(column)}^` : "";
  return `shaders/${file}:${line}: ${token ? `'${token}': ` : ""}${message.trim()}\n  ${source}${caret}`;
}

/** 64 bits by which programs can be told apart: MurmurHash3 over four bytes at a time, without its last steps, from two seeds. @param {string[]} texts */
export function fingerprint(texts) {
  const text = texts.join("\0");
  const words = new Uint32Array(text.length); // encoded it takes 3 bytes a character at most
  const { written } = new TextEncoder().encodeInto(text, new Uint8Array(words.buffer));
  return [0x811c9dc5, 0x01000193]
    .map((seed) => {
      let hash = seed;
      for (let i = 0; 4 * i < written; i++) {
        // A product's low bits know nothing of its factors' high ones: both are turned.
        let word = Math.imul(words[i], 0xcc9e2d51);
        word = Math.imul((word << 15) | (word >>> 17), 0x1b873593);
        hash ^= word;
        hash = Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64;
      }
      return (hash >>> 0).toString(16).padStart(8, "0");
    })
    .join("");
}
