// Gated gradients: of which layers the gradient is stored as bits and two vectors. Pure arithmetic.
//
// Where a relu is followed by a layer of one output, the gradient of what goes into it is an outer product with holes: DZ = (DY V^T), DY a column of the
// batch and V that layer's weights, and 0 where the relu was shut. A product with it needs no loads of DZ: a texel of gates says for 8 rows and 4 columns
// what is added, V and DY scale what goes in and what comes out. 8 x 4 results take 5.5 loads for their 128 sums instead of 12.
import { partsFor, rowsFor } from "./fragment_rows.js";
import { GATED_ROWS, layoutOf, matrixOf, ROW_TEXELS, size, texelsOf } from "./layout.js";

/** @import { RowsWanted } from "./fragment_rows.js" */
/** @import { Limits } from "./lower.js" */
/** @import { Group } from "../../plan/fuse.js" */
/** @import { Phase } from "../../plan/plan.js" */

/**
 * The gradients of a phase that are large enough to be gated, by name.
 * @param {Phase} phase @param {number} rows of a batch, aligned @param {RowsWanted} wanted @param {Limits} limits
 * @returns {Set<string>}
 */
export function gatedGradients({ groups, tensors, computed }, rows, wanted, { maxDrawBuffers, maxTextureSize }) {
  /** @type {Set<string>} */
  const found = new Set();
  if (wanted.gated === undefined || maxDrawBuffers < GATED_ROWS) return found;
  const { products } = wanted.gated;
  const tensor = (/** @type {string} */ name) => /** @type {import("../../nn/graph.js").Tensor} */ (tensors.get(name));
  const readersOf = (/** @type {string} */ name) => groups.filter(({ inputs }) => Object.values(inputs).includes(name));

  const columns = (/** @type {string} */ name) => size(tensor(name).shape);
  const texels = (/** @type {string} */ name) => texelsOf(tensor(name).shape);
  // One that has a single column itself is stored: it may be the factor DY of the layer before.
  const isOuter = (/** @type {Group} */ { kernel, ops: [product, slope] }) =>
    kernel === "affine_grad_input" && columns(product.inputs.dy) === 1 && slope?.attrs.fn === "relu" && columns(slope.outputs.dx) > 1 && !computed.has(slope.inputs.y);
  const mayRead = (/** @type {string} */ name, /** @type {Group} */ { kernel, ops: [{ inputs, outputs }, after] }) => {
    if (inputs.dy !== name || !(kernel === "affine_grad_input" || kernel === "affine_grad_weights")) return false;
    const other = outputs.dx ?? inputs.x;
    const large = rows * columns(name) * columns(other) >= products;
    if (kernel === "affine_grad_input") return large && rowsFor(wanted.activation, rows, texels(other)) === GATED_ROWS;
    const { shape, bias } = tensor(outputs.dw);
    const parts = partsFor(wanted.parts, rows, layoutOf({ ...matrixOf(shape), layers: 4, bias }, maxTextureSize).texels);
    return large && after?.type === "update" && parts === 1;
  };
  for (const group of groups) {
    const [name, ...others] = Object.values(group.outputs);
    if (others.length > 0 || !isOuter(group)) continue;
    if (texels(name) + ROW_TEXELS <= maxTextureSize && readersOf(name).every((reader) => mayRead(name, reader))) found.add(name);
  }
  return found;
}
