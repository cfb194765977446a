// Pooling.
import { imageShape, ONE, refuse, slide } from "./checks.js";

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  max_pool2d: {
    inputs: ONE,
    build(model, layer, [x], field) {
      const shape = imageShape(x, layer, field);
      const geometry = slide(shape, layer, layer.size, [1, 1], field);
      requireInside(layer, field);
      const output = [...geometry.size, shape[2]];
      return model.apply("max_pool2d", { x: x.tensor }, `${layer.name}.y`, output, { ...geometry, input: shape, output });
    },
  },
};

/** @param {any} layer @param {string} field */
function requireInside({ padding, size }, field) {
  if (!Array.isArray(padding)) return;
  if (padding.some((edges, axis) => Math.max(...edges) >= size[axis])) {
    throw refuse(`${field}.padding`, `a window may not lie in the padding alone: padding ${JSON.stringify(padding)} must stay below the size [${size}]`);
  }
}
