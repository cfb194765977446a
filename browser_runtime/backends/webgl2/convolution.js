// Which algorithm a convolution takes on a device: what both would cost, and the cheaper one where its memory fits. Pure arithmetic.
import { MAX_TRIPS } from "./kernels/common.js";
import { bytesOf, ceilDiv, layoutOf, matrixOf, rowsPerFragment, size } from "./layout.js";

/** @import { Choose, Cost } from "../../nn/model.js" */

/**
 * Times of a load of 4 numbers, of a multiply-add, and of a store of 4 numbers, relative to each other: a GPU waits for memory, a software
 * renderer for arithmetic, and a texel that is put together of four costs it as much as 40 products. What they
 * choose was measured on SwiftShader and on an H200, see docs/performance.md.
 */
const TIMES = {
  software: { load: 0, multiplyAdd: 1, store: 40 },
  gpu: { load: 1, multiplyAdd: 0.015, store: 10 },
};

/** Bytes of textures that the patches of all convolutions of a plan may take. WebGL does not tell how much memory there is. */
export const PATCH_BYTES = 2 ** 28;

/** A record is JSON, which has no infinity. @param {number} bytes */
const finite = (bytes) => (bytes < Infinity ? bytes : null);

/** Samples whose products share a load of weights. */
const ROWS = 4;

/**
 * Chooses for the convolutions of one plan by cost, once for each layer, so that all phases agree; or takes `algorithm` wherever it can be: tests and measurements want one or the other.
 * @param {import("./lower.js").Limits} limits
 * @param {number[]} batches rows of the batches of each phase
 * @param {"direct"|"im2col"} [algorithm]
 * @returns {Choose}
 */
export function chooser(limits, batches, algorithm) {
  const times = limits.software === false ? TIMES.gpu : TIMES.software;
  const layers = rowsPerFragment(ROWS, limits.maxDrawBuffers);
  const bytes = (/** @type {Omit<Parameters<typeof layoutOf>[0], "layers">} */ matrix) =>
    bytesOf([layoutOf({ ...matrix, layers }, limits.maxTextureSize)], limits.maxTextureSize);
  let left = PATCH_BYTES;
  /** @type {Map<string, import("../../nn/model.js").Choice>} */
  const chosen = new Map();
  const choose = (/** @type {any} */ { kernel, output, groups, transposed }, /** @type {boolean} */ trainable) => {
    const values = size(kernel.slice(0, -1));
    const [pixels, filters] = [output[0] * output[1], kernel.at(-1)];
    // The forward pass, and the gradient of weights that are trained; that of the input is the same draw for both.
    const products = (/** @type {number} */ texels) => {
      const each = pixels * ceilDiv(filters, 4) * texels;
      return { multiplyAdds: each * 16 * (trainable ? 2 : 1), loads: each * ((4 + ROWS) / ROWS + (trainable ? 2 : 0)) };
    };
    const channels = kernel.at(-2);
    const read = (values / channels) * ceilDiv(channels, 4);
    const direct = { ...products(read), stores: 0, bytes: finite(bytes({ ...matrixOf(kernel), bias: false })) };
    if (groups !== 1 || transposed) return { algorithm: /** @type {const} */ ("direct"), direct, im2col: null };
    const texels = ceilDiv(values, 4);
    const patches = Math.max(...batches.map((rows) => bytes({ rows, columns: pixels * values, pixels })));
    const { multiplyAdds, loads } = products(texels);
    const im2col = {
      multiplyAdds,
      loads: loads + pixels * texels * 4,
      stores: pixels * texels,
      bytes: finite(patches + bytes({ rows: values, columns: filters, bias: false })),
    };
    const time = (/** @type {Cost} */ cost) => cost.loads * times.load + cost.multiplyAdds * times.multiplyAdd + cost.stores * times.store;
    const wins = algorithm ? algorithm === "im2col" && patches < Infinity : patches <= left && time(im2col) < time(direct);
    // What is too long for shifted products is refused, as texelgrad/layers/conv.py says it is.
    if (!wins || read > MAX_TRIPS) return { algorithm: /** @type {const} */ ("direct"), direct, im2col };
    left -= patches;
    return { algorithm: /** @type {const} */ ("im2col"), direct, im2col };
  };
  return (layer, geometry, trainable) => {
    const choice = chosen.get(layer) ?? choose(geometry, trainable);
    chosen.set(layer, choice);
    return choice;
  };
}
