// Programs: compiled in parallel, cached by their final text, with errors that name the source file, line and column.
import { EngineError } from "../../errors.js";

/** @import { Origin } from "./shader_source.js" */

// One triangle over the whole viewport, without buffers.
const VERTEX = `#version 300 es
void main() { gl_Position = vec4(gl_VertexID == 1 ? 3. : -1., gl_VertexID == 2 ? 3. : -1., 0., 1.); }
`;

export class Programs {
  /** @param {WebGL2RenderingContext} gl */
  constructor(gl) {
    this.gl = gl;
    this.parallel = gl.getExtension("KHR_parallel_shader_compile");
    /** @type {Map<string, {program: WebGLProgram, fragment: WebGLShader, origins: Origin[], linked: boolean}>} */
    this.cache = new Map();
    /** @type {WeakMap<WebGLProgram, number[]>} */
    this.samplers = new WeakMap();
    this.vertex = this.shader(gl.VERTEX_SHADER, VERTEX);
  }

  /**
   * Starts compiling; `finish` waits. A text that was compiled before costs nothing.
   * @param {string} text @param {Origin[]} [origins] where its lines came from
   */
  start(text, origins = []) {
    if (this.cache.has(text)) return;
    const { gl } = this;
    const fragment = this.shader(gl.FRAGMENT_SHADER, text);
    const program = gl.createProgram();
    gl.attachShader(program, this.vertex);
    gl.attachShader(program, fragment);
    gl.linkProgram(program);
    this.cache.set(text, { program, fragment, origins, linked: false });
  }

  /**
   * The program of a text that was started, without blocking where the driver compiles in parallel.
   * @param {string} text
   * @returns {Promise<WebGLProgram>}
   */
  async finish(text) {
    const { program, linked } = this.entry(text);
    while (!linked && this.parallel && !this.gl.getProgramParameter(program, this.parallel.COMPLETION_STATUS_KHR)) await new Promise((resolve) => setTimeout(resolve, 1));
    return this.now(text);
  }

  /** The program of a text, compiled now if need be. @param {string} text @param {Origin[]} [origins] @returns {WebGLProgram} */
  now(text, origins) {
    this.start(text, origins);
    const entry = this.entry(text);
    if (!entry.linked) {
      this.verify(text, entry);
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

  /** @param {string} text */
  entry(text) {
    const entry = this.cache.get(text);
    if (!entry) throw new Error("finish() before start()");
    return entry;
  }

  /** @param {string} text @param {{program: WebGLProgram, fragment: WebGLShader, origins: Origin[]}} entry */
  verify(text, { program, fragment, origins }) {
    const { gl } = this;
    if (gl.getProgramParameter(program, gl.LINK_STATUS)) {
      ["Step", "Rows"].forEach((name, binding) => {
        const block = gl.getUniformBlockIndex(program, name);
        if (block !== gl.INVALID_INDEX) gl.uniformBlockBinding(program, block, binding);
      });
      return;
    }
    this.cache.delete(text);
    // A GPU process that has died says no to everything, also of the vertex shader, which always compiles.
    if (gl.isContextLost() || !gl.getShaderParameter(this.vertex, gl.COMPILE_STATUS)) {
      throw new EngineError("context_lost", "the WebGL context was lost while compiling");
    }
    const log = gl.getShaderInfoLog(fragment) || gl.getProgramInfoLog(program) || "no message";
    throw new EngineError("shader_error", explain(log, text, origins), { detail: { log } });
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
    this.gl.deleteShader(this.vertex);
    this.cache.clear();
  }
}

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
