// Kernels: for each kernel family of the plan, the draws that compute one of its groups. Pure data, no GL.
import * as activation from "./activation.js";
import * as clip from "./clip.js";
import * as conv from "./conv.js";
import * as dense from "./dense.js";
import * as embedding from "./embedding.js";
import * as dropout from "./dropout.js";
import * as elementwise from "./elementwise.js";
import * as loss from "./loss.js";
import * as norm from "./norm.js";
import * as pool from "./pool.js";
import * as shape from "./shape.js";
import * as update from "./update.js";

/** @typedef {(lowering: import("../lowering.js").Lowering, group: any) => import("../draw.js").Draw[]} Kernel */

/** By the type of a group's first op. @type {Record<string, Kernel>} */
export const kernels = { ...dense.kernels, ...norm.kernels, ...update.kernels, ...conv.kernels, ...embedding.kernels, ...pool.kernels, ...shape.kernels, ...loss.kernels, ...elementwise.kernels, ...dropout.kernels, ...activation.kernels, ...clip.kernels };
