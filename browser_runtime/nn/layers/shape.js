// Layers that only give values another shape.
import { size } from "../graph.js";
import { ONE } from "./checks.js";

/** @type {Record<string, import("./index.js").LayerType>} */
export const layers = {
  // Moves nothing: what reads it takes its pixels one after another.
  flatten: { inputs: ONE, build: (_model, _layer, [x]) => ({ tensor: x.tensor, shape: [size(x.shape)] }) },
};
