// Layers that join several values.
import { refuse } from "./checks.js";

/** @import { Model, Value } from "../model.js" */

const SEVERAL = { least: 2, most: Infinity };

/** Two at a time, in their order; the activation behind the last. @param {string} type of the op @returns {import("./index.js").LayerType} */
const elementwise = (type) => ({
  inputs: SEVERAL,
  build(model, layer, values, field) {
    const [first, ...others] = alike(model, values, layer, field);
    const { shape } = model.graph.tensor(first.tensor);
    const joined = others.slice(0, -1).reduce((a, b, i) => model.apply(type, { a: a.tensor, b: b.tensor }, `${layer.name}.part${i + 1}`, shape), first);
    const last = /** @type {Value} */ (others.at(-1));
    return { ...model.activated(layer, type, { a: joined.tensor, b: last.tensor }, shape), shape: first.shape };
  },
});

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  add: elementwise("add"),
  multiply: elementwise("multiply"),

  // Two at a time, in their order.
  concat: {
    inputs: SEVERAL,
    build(model, layer, values, field) {
      requireShapes(values, layer, field, "all but the last axis", ({ shape }) => [shape.length, ...shape.slice(0, -1)]);
      const [first, ...others] = values.map((value, k) => model.natural(value, `${layer.name}.x${k + 1}`));
      return others.reduce((a, b, i) => {
        const channels = /** @type {number} */ (a.shape.at(-1)) + /** @type {number} */ (b.shape.at(-1));
        const name = i === others.length - 1 ? "y" : `joined${i + 1}`;
        return model.apply("concat", { a: a.tensor, b: b.tensor }, `${layer.name}.${name}`, [...a.shape.slice(0, -1), channels], { split: a.shape.at(-1) });
      }, first);
    },
  },
};

/** Values of one shape, held alike. @param {Model} model @param {Value[]} values @param {any} layer @param {string} field @returns {Value[]} */
function alike(model, values, layer, field) {
  requireShapes(values, layer, field, "one shape", ({ shape }) => shape);
  const channels = values.map(({ tensor }) => model.graph.tensor(tensor).shape.at(-1));
  return channels.every((count) => count === channels[0]) ? values : values.map((value, k) => model.natural(value, `${layer.name}.x${k + 1}`));
}

/** @param {Value[]} values @param {any} layer @param {string} field @param {string} what @param {(value: Value) => number[]} part that must be the same */
function requireShapes(values, layer, field, what, part) {
  for (const [k, value] of values.entries()) {
    if (part(value).join() !== part(values[0]).join()) {
      throw refuse(`${field}.inputs.${k}`, `${layer.type} needs inputs of ${what}, these are ${values.map((v) => `[${v.shape}]`).join(", ")}`);
    }
  }
}
