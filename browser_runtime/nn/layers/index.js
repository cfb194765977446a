// Layer types: from a layer of the spec to ops of the graph. One table for all families; texelgrad/layers/ holds their fields and shapes in Python.
import * as activation from "./activation.js";
import * as conv from "./conv.js";
import * as dense from "./dense.js";
import * as embedding from "./embedding.js";
import * as dropout from "./dropout.js";
import * as merge from "./merge.js";
import * as norm from "./norm.js";
import * as pool from "./pool.js";
import * as shape from "./shape.js";

/** @import { Model, Value } from "../model.js" */

/**
 * How many values a layer reads, and what it adds to the graph.
 * @typedef {object} LayerType
 * @property {{least: number, most: number}} inputs
 * @property {(model: Model, layer: any, inputs: Value[], field: string) => Value} build `field`: where the layer stands in the spec, for faults
 */

/** @type {Record<string, LayerType>} */
export const layerTypes = { ...dense.layers, ...embedding.layers, ...norm.layers, ...conv.layers, ...pool.layers, ...shape.layers, ...merge.layers, ...activation.layers, ...dropout.layers };
