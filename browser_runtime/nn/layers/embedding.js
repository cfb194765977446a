// Embeddings: rows of a table by their numbers.
import { ONE, refuse } from "./checks.js";

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  embedding: {
    inputs: ONE,
    build(model, layer, [x], field) {
      if (model.graph.tensor(x.tensor).kind !== "input") throw refuse(field, "embedding looks up whole numbers, which only an input of the model holds");
      if (x.shape.length !== 1 || model.graph.tensor(x.tensor).shape.length !== 1) {
        throw refuse(field, `embedding needs an input [length], this one is [${model.graph.tensor(x.tensor).shape}]`);
      }
      const { vocabulary, units, name } = layer;
      model.lookups.set(x.tensor, Math.min(vocabulary, model.lookups.get(x.tensor) ?? Infinity));
      const shape = [vocabulary, units];
      const w = model.parameter(layer, { shape, blocks: shape, fanIn: vocabulary, fanOut: units, bias: false });
      const [length] = x.shape;
      return model.apply("embedding", { x: x.tensor, w }, `${name}.y`, [length, units], { vocabulary, length, units });
    },
  },
};
