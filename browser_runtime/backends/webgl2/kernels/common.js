// What the kernels of many families share: constants, and defines made from a group's ops.

/** Names of lib/activation.glsl. @type {Record<string, string>} */
export const ACTIVATIONS = Object.fromEntries(
  ["linear", "relu", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "tanh", "softplus", "hard_sigmoid", "hard_swish"].map((fn) => [fn, fn.toUpperCase()]),
);

/** Values of the long sums are added in blocks of this many texels (256 numbers), then the blocks: see docs/numerics.md. */
export const BLOCK = 64;

/** Loop trips of one fragment; llvmpipe stops silently at 65,535 for all loops of a shader together. */
export const MAX_TRIPS = 32_768;

/** Trips of the loops over the rows and lanes of a fragment in an epilogue. */
export const ROW_LANES = 8 * 4;

/** Trips of a softmax over the channels of a pixel: all of them for the largest and for the sum, texel by texel and lane by lane, and its own four.
 * @param {number} texelsPerPixel */
export const softmaxTrips = (texelsPerPixel) => 2 * 5 * texelsPerPixel + 4;

export const area = (/** @type {number[]} */ [height, width]) => height * width;

/** @param {any} group @param {string} type @returns {any} */
export const find = (group, type) => group.ops.find((/** @type {any} */ op) => op.type === type);

/** The activation, or its gradient, behind a group's first op. @param {any} op undefined where there is none */
export const activationOf = (op) => ACTIVATIONS[op?.attrs.fn ?? "linear"];

/** The tensor from which an activation's slope is computed: its output, or its input. @param {any} grad the op activation_grad @returns {string} */
export const slopeSource = (grad) => grad.inputs.y ?? grad.inputs.x;

/**
 * What a draw needs for the slope of an activation behind a gradient: lib/slope.glsl's.
 * @param {import("../lowering.js").Lowering} lowering @param {any} grad the op activation_grad, undefined where there is none
 */
export const slopeParts = (lowering, grad) => ({
  defines: { GRAD_ACTIVATION: activationOf(grad) },
  reads: grad ? [lowering.read("G", slopeSource(grad))] : [],
});

/** lib/window.glsl's, and lib/taps.glsl's. @param {any} attrs */
export function windowDefines({ taps, stride, dilation, padding, input, output, transposed }) {
  const pair = (/** @type {number[]} */ [y, x]) => `ivec2(${y}, ${x})`;
  const [under, windows] = transposed ? [output, input] : [input, output];
  return {
    WINDOW: pair(taps), STRIDE: pair(stride), DILATION: pair(dilation), PADDING: pair(padding), INPUT: pair(under), OUTPUT: pair(windows),
    ...(transposed && { TRANSPOSED: 1 }),
  };
}

/** A loop that takes `count` at once: NAMES, and EACH_NAME(F) for all of them. @param {string} name @param {number} count */
export const atOnce = (name, count) => ({ [`${name}S`]: count, [`EACH_${name}(F)`]: Array.from({ length: count }, (_, i) => `F(${i})`).join(" ") });

/** The largest power of two, `most` at most, that divides `count`: taken at once it leaves no remainder. @param {number} most @param {number} count */
export function largestPower(most, count) {
  let power = 1;
  while (power * 2 <= most && count % (power * 2) === 0) power *= 2;
  return power;
}

/**
 * A loop over the texels of a row, so many at once at most, which leaves no remainder: a power of two, which divides a block.
 * @param {number} most @param {number} texelsPerRow
 */
export const texelsAtOnce = (most, texelsPerRow) => atOnce("TEXEL", largestPower(most, texelsPerRow));

/** A float32 in a shader's text, bit for bit: what compilers make of decimals is theirs to say. @param {number} x */
export const exactFloat = (x) => `uintBitsToFloat(${new Uint32Array(Float32Array.of(x).buffer)[0]}u)`;
