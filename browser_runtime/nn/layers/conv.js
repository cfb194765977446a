// Convolutions.
import { imageShape, ONE, refuse, slide } from "./checks.js";

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  conv2d: {
    inputs: ONE,
    build(model, layer, [x], field) {
      const shape = imageShape(x, layer, field);
      const geometry = slide(shape, layer, layer.kernel, layer.dilation, field);
      const [channels, { groups, filters }] = [shape[2], layer];
      requireGroups(channels, layer, field);
      const area = layer.kernel[0] * layer.kernel[1];
      const kernel = [...layer.kernel, channels / groups, filters];
      const w = model.parameter(layer, { shape: kernel, blocks: kernel, fanIn: (area * channels) / groups, fanOut: area * filters, bias: layer.use_bias });
      const output = [...geometry.size, filters];
      return model.activated(layer, "conv2d", { x: x.tensor, w }, output, { ...geometry, input: shape, output, groups });
    },
  },
};

/** @param {number} channels @param {any} layer @param {string} field */
function requireGroups(channels, { groups, filters }, field) {
  if (channels % groups || filters % groups) {
    throw refuse(`${field}.groups`, `${groups} groups must share ${channels} channels and ${filters} filters alike`);
  }
}
