// fragment.js: evaluates a GLSL expression over an array, four values a texel. Only for tests of shaders/lib.

const WIDTH = 1024; // in texels

/**
 * @typedef {object} Job
 * @property {string[]} includes paths below shaders/, put before the expression in this order, what one includes first
 * @property {string} expression GLSL of type vec4 (uvec4 for uint32), a function of `x` of that type and of `uint index`,
 *   the texel's number
 * @property {"float32" | "uint32"} dtype of `x` and of the result
 */

/**
 * @param {Job} job
 * @param {{shape: number[], data: Float32Array | Uint32Array}} x
 * @returns {Promise<Float32Array | Uint32Array>} the expression's values, as many as x has
 */
export async function evaluate(job, x) {
  const bundle = await (await fetch("/shaders/bundle.json")).json();
  const isFloat = job.dtype === "float32";
  const fragment = `#version 300 es
precision highp float;
precision highp int;
precision highp sampler2D;
precision highp usampler2D;
uniform highp ${isFloat ? "sampler2D" : "usampler2D"} source;
layout(location = 0) out highp ${isFloat ? "vec4" : "uvec4"} result;
${job.includes.map((name) => bundle[name].replace(/^#include.*$/gm, "")).join("\n")}
void main() {
  ivec2 at = ivec2(gl_FragCoord.xy);
  uint index = uint(at.y * ${WIDTH} + at.x);
  ${isFloat ? "vec4" : "uvec4"} x = texelFetch(source, at, 0);
  result = ${job.expression};
}`;
  const numTexels = Math.ceil(x.data.length / 4);
  const height = Math.max(1, Math.ceil(numTexels / WIDTH));
  const padded = isFloat ? new Float32Array(height * WIDTH * 4) : new Uint32Array(height * WIDTH * 4);
  padded.set(x.data);

  const canvas = new OffscreenCanvas(1, 1);
  const gl = canvas.getContext("webgl2");
  if (gl === null || gl.getExtension("EXT_color_buffer_float") === null) throw new Error("no WebGL2 with float targets");
  try {
    const formats = isFloat
      ? /** @type {const} */ ([gl.RGBA32F, gl.RGBA, gl.FLOAT])
      : /** @type {const} */ ([gl.RGBA32UI, gl.RGBA_INTEGER, gl.UNSIGNED_INT]);
    const texture = (/** @type {ArrayBufferView | null} */ data) => {
      const made = gl.createTexture();
      gl.bindTexture(gl.TEXTURE_2D, made);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
      gl.texImage2D(gl.TEXTURE_2D, 0, formats[0], WIDTH, height, 0, formats[1], formats[2], data);
      return made;
    };
    const target = texture(null);
    texture(padded);
    gl.bindFramebuffer(gl.FRAMEBUFFER, gl.createFramebuffer());
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, target, 0);
    gl.useProgram(link(gl, fragment));
    gl.viewport(0, 0, WIDTH, height);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.readPixels(0, 0, WIDTH, height, formats[1], formats[2], padded);
    if (gl.getError() !== gl.NO_ERROR) throw new Error("a GL call failed");
    return padded.slice(0, x.data.length);
  } finally {
    gl.getExtension("WEBGL_lose_context")?.loseContext(); // a page may hold only 16 contexts
  }
}

/** @returns {string} the unmasked renderer, to stand beside measured errors */
export function renderer() {
  const gl = new OffscreenCanvas(1, 1).getContext("webgl2");
  const name = gl?.getParameter(gl.getExtension("WEBGL_debug_renderer_info")?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER);
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return String(name);
}

/** @param {WebGL2RenderingContext} gl @param {string} fragment */
function link(gl, fragment) {
  const triangle = `#version 300 es
void main() { gl_Position = vec4(gl_VertexID == 1 ? 3. : -1., gl_VertexID == 2 ? 3. : -1., 0., 1.); }`;
  const program = gl.createProgram();
  for (const [type, text] of /** @type {const} */ ([[gl.VERTEX_SHADER, triangle], [gl.FRAGMENT_SHADER, fragment]])) {
    const shader = gl.createShader(type);
    if (shader === null) throw new Error("the context is lost");
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(`${gl.getShaderInfoLog(shader)}\n${text}`);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(String(gl.getProgramInfoLog(program)));
  return program;
}
