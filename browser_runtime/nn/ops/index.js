// The primitive ops' gradients, as graph builders, one table for all families. Formulas stand in reference/, kernels in shaders/.
import * as activation from "./activation.js";
import * as conv from "./conv.js";
import * as embedding from "./embedding.js";
import * as dropout from "./dropout.js";
import * as elementwise from "./elementwise.js";
import * as linear from "./linear.js";
import * as norm from "./norm.js";
import * as pool from "./pool.js";
import * as shape from "./shape.js";

/** @import { Graph, Op } from "../graph.js" */

/**
 * What a backward pass may ask of the gradients of an op's inputs. Every use of a tensor contributes one; they are added where there are several.
 * @typedef {object} Gradients
 * @property {(input: string) => string|null} want name of a new tensor to write this use's gradient into, null where nobody needs it
 * @property {(input: string, gradient: string) => void} pass an existing tensor is this use's gradient as it stands
 */

/**
 * Emits the ops of the backward pass of one op.
 * @callback Backward
 * @param {Graph} graph
 * @param {Op} op
 * @param {string} gradient tensor name of the gradient with respect to the op's output y
 * @param {Gradients} gradients of its inputs
 */

/** @type {Record<string, Backward>} */
export const backward = { ...linear.backward, ...norm.backward, ...conv.backward, ...embedding.backward, ...pool.backward, ...shape.backward, ...activation.backward, ...elementwise.backward, ...dropout.backward };
