// Self-test: what this device does with bits, NaN and infinities, found out by doing it. Feeds the precision report.
import { layoutOf } from "./layout.js";
import { kernelText } from "./shader_source.js";

/** @import { Device } from "./device.js" */

/**
 * Expressions on uniforms that no compiler can fold, what IEEE 754 makes of them, and whether our kernels rely on it.
 * @type {{expression: string, expected: number, used: boolean}[]}
 */
const CASES = [
  { expression: "tg_relu(nan)", expected: NaN, used: true },
  { expression: "tg_relu(-inf)", expected: 0, used: true },
  { expression: "tg_relu_grad(nan, one)", expected: 1, used: true },
  { expression: "tg_relu_grad(zero, nan)", expected: 0, used: true },
  { expression: "tg_isnan(nan) ? 1. : 0.", expected: 1, used: true },
  { expression: "tg_isfinite(inf) ? 1. : 0.", expected: 0, used: true },
  { expression: "tg_exp(nan)", expected: NaN, used: true },
  { expression: "tg_exp(inf)", expected: Infinity, used: true },
  { expression: "tg_log(zero)", expected: -Infinity, used: true },
  { expression: "nan + one", expected: NaN, used: true },
  { expression: "zero * nan", expected: NaN, used: true },
  { expression: "zero * inf", expected: NaN, used: true },
  { expression: "inf - infinity", expected: NaN, used: true },
  // One variable: NVIDIA's compiler makes x - x 0 whatever x is, so kernels never subtract a value from itself.
  { expression: "inf - inf", expected: NaN, used: false },
  { expression: "one / zero", expected: Infinity, used: false },
  { expression: "isnan(nan) ? 1. : 0.", expected: 1, used: false },
  { expression: "isinf(inf) ? 1. : 0.", expected: 1, used: false },
  { expression: "nan == nan ? 1. : 0.", expected: 0, used: false },
  { expression: "nan < zero ? 1. : 0.", expected: 0, used: false },
  { expression: "max(nan, one)", expected: NaN, used: false },
  { expression: "max(one, nan)", expected: NaN, used: false },
  { expression: "clamp(nan, zero, one)", expected: NaN, used: false },
  { expression: "nan > zero ? nan : zero", expected: 0, used: false },
  { expression: "nan < zero ? zero : nan", expected: NaN, used: false },
  { expression: "mix(one, nan, false)", expected: 1, used: true },
];

/**
 * The truth table of NaN and infinities.
 * @param {Device} device
 * @returns {{expression: string, expected: string, got: string, ok: boolean, used: boolean}[]} numbers as text, so that NaN survives JSON
 */
export function nonfiniteTable(device) {
  const { gl } = device;
  const size = { width: CASES.length, height: 1, layers: 1 };
  const cases = CASES.map(({ expression }, i) => `    case ${i}: value = ${expression}; break;`);
  const shader = [
    '#include "lib/math.glsl"',
    "uniform uvec4 uBits;",
    "void main() {",
    // `infinity` is inf again, which a compiler can't know.
    "  float infinity = uintBitsToFloat(uBits.y | uBits.w);",
    "  float nan = uintBitsToFloat(uBits.x), inf = uintBitsToFloat(uBits.y), one = uintBitsToFloat(uBits.z), zero = uintBitsToFloat(uBits.w), value = 0.;",
    "  switch (int(gl_FragCoord.x)) {",
    ...cases,
    "  }",
    "  STORE(oY[0], vec4(value));",
    "}",
  ].join("\n");
  const domain = layoutOf({ rows: 1, columns: 4 * CASES.length, layers: 1 }, CASES.length);
  const source = { shader: "selftest", defines: {}, reads: [], computed: [], writes: [{ name: "Y", targets: 1 }], domain, width: CASES.length };
  const { text } = kernelText(source, { ...device.shaders, selftest: shader }, device.dialect);
  const program = device.programs.now({ text });
  const texture = device.createTexture(size);
  const framebuffer = device.createFramebuffer([{ texture, layer: 0 }]);
  gl.useProgram(program);
  gl.uniform4ui(gl.getUniformLocation(program, "uBits"), 0x7fc00000, 0x7f800000, 0x3f800000, 0);
  gl.viewport(0, 0, size.width, 1);
  gl.drawArrays(gl.TRIANGLES, 0, 3);
  const values = new Float32Array(size.width * 4);
  read(device, size, values);
  device.deleteFramebuffer(framebuffer);
  device.deleteTexture(texture, size);
  return CASES.map(({ expression, expected, used }, i) => {
    const got = values[4 * i];
    return { expression, expected: String(expected), got: String(got), ok: got === expected || (Number.isNaN(got) && Number.isNaN(expected)), used };
  });
}

/**
 * Whether readPixels gives back the bits that were uploaded: every exponent, both signs, denormals, infinities and NaN among them.
 * @param {Device} device
 * @returns {{exact: boolean, count: number, mismatches: number}}
 */
export function readbackRoundTrip(device) {
  const { gl } = device;
  const size = { width: 32, height: 32, layers: 1 };
  const count = size.width * size.height * 4;
  const bits = new Uint32Array(count);
  // Each exponent 8 times with each sign, and mantissas spread by a multiplicative hash (the golden ratio of 2^32).
  for (let i = 0; i < count; i++) bits[i] = ((i & 1) << 31) | (((i >> 1) & 0xff) << 23) | (Math.imul(i + 1, 0x9e3779b1) >>> 9);
  const texture = device.createTexture(size);
  const { format, type, view } = device.transfer(bits.buffer);
  gl.bindTexture(gl.TEXTURE_2D_ARRAY, texture);
  gl.texSubImage3D(gl.TEXTURE_2D_ARRAY, 0, 0, 0, 0, size.width, size.height, 1, format, type, /** @type {any} */ (view));
  const framebuffer = device.createFramebuffer([{ texture, layer: 0 }]);
  const values = new Float32Array(count);
  read(device, size, values);
  device.deleteFramebuffer(framebuffer);
  device.deleteTexture(texture, size);
  const got = new Uint32Array(values.buffer);
  const mismatches = bits.reduce((sum, wanted, i) => sum + (got[i] === wanted ? 0 : 1), 0);
  return { exact: mismatches === 0, count, mismatches };
}

/** @param {Device} device @param {{width: number, height: number}} size @param {Float32Array} out */
function read(device, { width, height }, out) {
  const { format, type, view } = device.transfer(out.buffer);
  device.gl.readPixels(0, 0, width, height, format, type, /** @type {any} */ (view));
}

/** Limits worth keeping with a run. @param {Device} device @returns {Record<string, number>} */
export function deviceLimits({ gl, record }) {
  return {
    maxTextureSize: record.maxTextureSize,
    maxArrayTextureLayers: record.maxArrayLayers,
    float32RenderTargets: record.maxDrawBuffers,
    maxCombinedTextureImageUnits: gl.getParameter(gl.MAX_COMBINED_TEXTURE_IMAGE_UNITS),
    maxTextureImageUnits: gl.getParameter(gl.MAX_TEXTURE_IMAGE_UNITS),
    maxUniformBlockSize: gl.getParameter(gl.MAX_UNIFORM_BLOCK_SIZE),
    uniformBufferOffsetAlignment: gl.getParameter(gl.UNIFORM_BUFFER_OFFSET_ALIGNMENT),
  };
}
