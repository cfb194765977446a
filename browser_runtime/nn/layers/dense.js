// Dense layers.
import { ONE, refuse } from "./checks.js";

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  // Where an image was flattened, the weight rows come pixel by pixel, as the image lies.
  dense: {
    inputs: ONE,
    build(model, layer, [x], field) {
      if (x.shape.length !== 1) throw refuse(field, `dense needs a flat input, this one is [${x.shape}]; put a flatten before it`);
      const [fanIn, fanOut] = [x.shape[0], layer.units];
      const channels = /** @type {number} */ (model.graph.tensor(x.tensor).shape.at(-1));
      const blocks = [fanIn / channels, channels, fanOut];
      const w = model.parameter(layer, { shape: [fanIn, fanOut], blocks, fanIn, fanOut, bias: layer.use_bias });
      return model.activated(layer, "affine", { x: x.tensor, w }, [fanOut]);
    },
  },
};
