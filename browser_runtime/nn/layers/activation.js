// Activations as layers of their own.
import { ONE } from "./checks.js";

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  activation: {
    inputs: ONE,
    build(model, layer, [x]) {
      const { shape } = model.graph.tensor(x.tensor);
      return { ...model.activation(layer.function, x, `${layer.name}.y`, shape), shape: x.shape };
    },
  },
};
