// Dropout.
import { dropoutDraw } from "../random.js";
import { ONE } from "./checks.js";

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  // Only in training: evaluation and prediction read what it would read.
  dropout: {
    inputs: ONE,
    build(model, layer, [x]) {
      const number = model.dropouts++;
      if (!model.training || layer.rate === 0) return x;
      const { shape } = model.graph.tensor(x.tensor);
      return { ...model.apply("dropout", { x: x.tensor }, `${layer.name}.y`, shape, dropoutDraw(model.seed, number, layer.rate)), shape: x.shape };
    },
  },
};
