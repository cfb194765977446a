// Convolutions.
import { imageShape, ONE, slide } from "./checks.js";

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  conv2d: {
    inputs: ONE,
    build(model, layer, [x], field) {
      const shape = imageShape(x, layer, field);
      const geometry = slide(shape, layer, layer.kernel, layer.dilation, field);
      const [area, channels] = [layer.kernel[0] * layer.kernel[1], shape[2]];
      const kernel = [...layer.kernel, channels, layer.filters];
      const w = model.parameter(layer, { shape: kernel, blocks: kernel, fanIn: area * channels, fanOut: area * layer.filters, bias: layer.use_bias });
      const output = [...geometry.size, layer.filters];
      return model.activated(layer, "conv2d", { x: x.tensor, w }, output, { ...geometry, input: shape, output });
    },
  },
};
