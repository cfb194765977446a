// Layers that only give values another shape, or move them.
import { size } from "../graph.js";
import { imageShape, ONE, refuse } from "./checks.js";

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  // Moves nothing: what reads it takes its pixels one after another.
  flatten: { inputs: ONE, build: (_model, _layer, [x]) => ({ tensor: x.tensor, shape: [size(x.shape)] }) },

  // Moves nothing where the channels of a pixel stay together.
  reshape: {
    inputs: ONE,
    build(model, layer, [x], field) {
      if (size(layer.shape) !== size(x.shape)) throw refuse(`${field}.shape`, `[${layer.shape}] has ${size(layer.shape)} elements, its input [${x.shape}] has ${size(x.shape)}`);
      const value = { tensor: x.tensor, shape: layer.shape };
      return layer.shape.length === 1 ? value : model.natural(value, `${layer.name}.y`);
    },
  },

  upsample2d: {
    inputs: ONE,
    build(model, layer, [x], field) {
      const [height, width, channels] = imageShape(x, layer, field);
      const large = [height * layer.size[0], width * layer.size[1], channels];
      // Each pixel fills a window of the larger image, and its gradient is the sum over that.
      const windows = { taps: layer.size, stride: layer.size, dilation: [1, 1], padding: [0, 0], input: large, output: [height, width, channels] };
      return model.apply("upsample2d", { x: x.tensor }, `${layer.name}.y`, large, windows);
    },
  },

  zero_pad2d: {
    inputs: ONE,
    build(model, layer, [x], field) {
      const [height, width, channels] = imageShape(x, layer, field);
      const [[above, below], [left, right]] = layer.padding;
      const output = [height + above + below, width + left + right, channels];
      return model.apply("shift2d", { x: x.tensor }, `${layer.name}.y`, output, { input: [height, width, channels], output, offset: [-above, -left] });
    },
  },

  crop2d: {
    inputs: ONE,
    build(model, layer, [x], field) {
      const [height, width, channels] = imageShape(x, layer, field);
      const [[above, below], [left, right]] = layer.cropping;
      const output = [height - above - below, width - left - right, channels];
      if (output[0] < 1 || output[1] < 1) throw refuse(`${field}.cropping`, `leaves nothing of an input of ${height} x ${width}`);
      return model.apply("shift2d", { x: x.tensor }, `${layer.name}.y`, output, { input: [height, width, channels], output, offset: [above, left] });
    },
  },
};
