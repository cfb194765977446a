// Pooling.
import { imageShape, ONE, refuse, slide } from "./checks.js";

/** @import { LayerType } from "./index.js" */

/** @param {string} type of the op @returns {LayerType} */
const sliding = (type) => ({
  inputs: ONE,
  build(model, layer, [x], field) {
    const shape = imageShape(x, layer, field);
    const geometry = slide(shape, layer, layer.size, [1, 1], field);
    requireInside(layer, field);
    const output = [...geometry.size, shape[2]];
    return model.apply(type, { x: x.tensor }, `${layer.name}.y`, output, { ...geometry, input: shape, output });
  },
});

/** One window over the whole image, which leaves a row of channels. @param {string} type of the op @returns {LayerType} */
const global = (type) => ({
  inputs: ONE,
  build(model, layer, [x], field) {
    const [height, width, channels] = imageShape(x, layer, field);
    const geometry = { taps: [height, width], stride: [height, width], dilation: [1, 1], padding: [0, 0] };
    const attrs = { ...geometry, input: [height, width, channels], output: [1, 1, channels] };
    return model.apply(type, { x: x.tensor }, `${layer.name}.y`, [channels], attrs);
  },
});

/** @type {Record<string, LayerType>} */
export const layers = {
  max_pool2d: sliding("max_pool2d"),
  avg_pool2d: sliding("avg_pool2d"),
  global_max_pool2d: global("max_pool2d"),
  global_avg_pool2d: global("avg_pool2d"),
};

/** @param {any} layer @param {string} field */
function requireInside({ padding, size }, field) {
  if (!Array.isArray(padding)) return;
  if (padding.some((edges, axis) => Math.max(...edges) >= size[axis])) {
    throw refuse(`${field}.padding`, `a window may not lie in the padding alone: padding ${JSON.stringify(padding)} must stay below the size [${size}]`);
  }
}
