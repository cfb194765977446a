// Layers that join several values.
import { refuse } from "./checks.js";

/** @import { Value } from "../model.js" */

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  // Two at a time, in their order; the activation behind the last.
  add: {
    inputs: { least: 2, most: Infinity },
    build(model, layer, [first, ...others], field) {
      requireAlike(model, [first, ...others], layer, field);
      const { shape } = model.graph.tensor(first.tensor);
      const sum = others.slice(0, -1).reduce((a, b, i) => model.apply("add", { a: a.tensor, b: b.tensor }, `${layer.name}.sum${i + 1}`, shape), first);
      const last = /** @type {Value} */ (others.at(-1));
      return { ...model.activated(layer, "add", { a: sum.tensor, b: last.tensor }, shape), shape: first.shape };
    },
  },
};

/** @param {import("../model.js").Model} model @param {Value[]} values @param {any} layer @param {string} field */
function requireAlike({ graph }, values, layer, field) {
  for (const [k, { shape, tensor }] of values.entries()) {
    if (shape.join() !== values[0].shape.join()) {
      throw refuse(`${field}.inputs.${k}`, `${layer.type} needs inputs of one shape, these are ${values.map((v) => `[${v.shape}]`).join(", ")}`);
    }
    if (graph.tensor(tensor).shape.join() !== graph.tensor(values[0].tensor).shape.join()) {
      throw refuse(`${field}.inputs.${k}`, `${layer.type} can't join a flattened image with a flat input; flatten both, or neither`);
    }
  }
}
