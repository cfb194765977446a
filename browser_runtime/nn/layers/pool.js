// Pooling.
import { imageShape, ONE, oneRow, refuse, sequenceShape, slide } from "./checks.js";

/** @import { LayerType } from "./index.js" */

/** @param {string} type of the op @returns {LayerType} */
const sliding = (type) => ({
  inputs: ONE,
  build(model, layer, [x], field) {
    const shape = imageShape(x, layer, field);
    const geometry = slide(shape, layer, layer.size, [1, 1], field);
    requireInside(layer, layer.size, layer.padding, field);
    const output = [...geometry.size, shape[2]];
    return model.apply(type, { x: x.tensor }, `${layer.name}.y`, output, { ...geometry, input: shape, output });
  },
});

/** The same over a sequence. @param {string} type of the op @returns {LayerType} */
const sliding1d = (type) => ({
  inputs: ONE,
  build(model, layer, [x], field) {
    const [length, channels] = sequenceShape(x, layer, field);
    const input = [1, length, channels];
    const geometry = slide(input, oneRow(layer), [1, layer.size], [1, 1], field);
    requireInside(layer, [layer.size], [layer.padding], field);
    const attrs = { ...geometry, input, output: [...geometry.size, channels] };
    return model.apply(type, { x: x.tensor }, `${layer.name}.y`, [geometry.size[1], channels], attrs);
  },
});

/** One window over the whole image or sequence, which leaves a row of channels. @param {string} type of the op @returns {LayerType} */
const global = (type) => ({
  inputs: ONE,
  build(model, layer, [x], field) {
    const sequence = layer.type.endsWith("1d");
    const [height, width, channels] = sequence ? [1, ...sequenceShape(x, layer, field)] : imageShape(x, layer, field);
    const geometry = { taps: [height, width], stride: [height, width], dilation: [1, 1], padding: [0, 0] };
    const attrs = { ...geometry, input: [height, width, channels], output: [1, 1, channels] };
    return model.apply(type, { x: x.tensor }, `${layer.name}.y`, [channels], attrs);
  },
});

/** @type {Record<string, LayerType>} */
export const layers = {
  max_pool2d: sliding("max_pool2d"),
  avg_pool2d: sliding("avg_pool2d"),
  max_pool1d: sliding1d("max_pool2d"),
  avg_pool1d: sliding1d("avg_pool2d"),
  global_max_pool2d: global("max_pool2d"),
  global_avg_pool2d: global("avg_pool2d"),
  global_max_pool1d: global("max_pool2d"),
  global_avg_pool1d: global("avg_pool2d"),
};

/** @param {any} layer @param {number[]} size @param {any} padding of each axis, or its name @param {string} field */
function requireInside(layer, size, padding, field) {
  if (!Array.isArray(layer.padding)) return;
  if (size.some((extent, axis) => Math.max(...padding[axis]) >= extent)) {
    throw refuse(`${field}.padding`, `a window may not lie in the padding alone: padding ${JSON.stringify(layer.padding)} must stay below the size [${size}]`);
  }
}
