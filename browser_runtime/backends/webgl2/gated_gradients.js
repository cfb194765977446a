// Gated gradients: of which layers the gradient is stored as bits and two vectors. Pure arithmetic.
//
// Where a relu is followed by a layer of one output, the gradient of what goes into it is an outer product with holes: DZ = (DY V^T), DY a column of the
// batch and V that layer's weights, and 0 where the relu was shut. A product with it needs no loads of DZ: a texel of gates says for 8 rows and 4 columns
// what is added, V and DY scale what goes in and what comes out. 8 x 4 results take 5.5 loads for their 128 sums instead of 12.
import { partsFor, rowsFor } from "./fragment_rows.js";
import { columnsOf, layoutOf, matrixOf, roundUp, size } from "./layout.js";

/** @import { RowsWanted } from "./fragment_rows.js" */
/** @import { Layout } from "./layout.js" */
/** @import { Limits } from "./lower.js" */
/** @import { Group } from "../../plan/fuse.js" */
/** @import { Phase } from "../../plan/plan.js" */

/** Rows of a texel of gates: bit 4 i + c is that of row i and column c. */
export const GATED_ROWS = 8;
/** Column texels behind the gates: they hold DY's rows. */
const ROW_TEXELS = GATED_ROWS / 4;

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

  const isOuter = (/** @type {Group} */ { kernel, ops: [product, slope] }) =>
    kernel === "affine_grad_input" && size(tensor(product.inputs.dy).shape) === 1 && slope?.attrs.fn === "relu" && !computed.has(slope.inputs.y);
  const mayRead = (/** @type {string} */ name, /** @type {Group} */ { kernel, ops: [{ inputs, outputs }, after] }) => {
    if (inputs.dy !== name || !(kernel === "affine_grad_input" || kernel === "affine_grad_weights")) return false;
    const other = outputs.dx ?? inputs.x;
    const large = rows * size(tensor(name).shape) * size(tensor(other).shape) >= products;
    if (kernel === "affine_grad_input") return large && rowsFor(wanted.activation, rows, texelsOf(tensor(other).shape)) === GATED_ROWS;
    const { shape, bias } = tensor(outputs.dw);
    const parts = partsFor(wanted.parts, rows, layoutOf({ ...matrixOf(shape), layers: 4, bias }, maxTextureSize).texels);
    return large && after?.type === "update" && parts === 1;
  };
  for (const group of groups) {
    const [name, ...others] = Object.values(group.outputs);
    if (others.length > 0 || !isOuter(group)) continue;
    const fits = texelsOf(tensor(name).shape) + ROW_TEXELS <= maxTextureSize;
    if (fits && readersOf(name).every((reader) => mayRead(name, reader))) found.add(name);
  }
  return found;
}

/** @param {number[]} shape of a batched tensor */
function texelsOf(shape) {
  const { columns, pixels } = columnsOf(shape);
  return pixels * Math.ceil(columns / pixels / 4);
}

/**
 * Of the gates, and of the factors beside them, which are render targets of the same draw: column texel n has those of V's rows 4n to 4n + 3, the last
 * two those of DY's 8 rows.
 * @param {Layout} gradient @param {number} maxSize MAX_TEXTURE_SIZE
 */
export const gatesLayout = ({ rows, texelsPerRow }, maxSize) =>
  layoutOf({ rows: rows / GATED_ROWS, columns: 4 * (texelsPerRow + ROW_TEXELS), layers: 1 }, maxSize);

/**
 * A weight gradient as a product with gates makes it: turned, so that a fragment's 8 rows are 8 columns of the gates; the bias is the last column texel.
 * @param {import("../../nn/graph.js").Tensor} gradient @param {number} maxSize MAX_TEXTURE_SIZE
 */
export function turnedLayout({ shape, bias }, maxSize) {
  const { rows, columns, blocks } = matrixOf(shape);
  const texels = blocks * Math.ceil(rows / blocks / 4) + (bias ? 1 : 0);
  return layoutOf({ rows: roundUp(columns, GATED_ROWS), columns: 4 * texels, layers: GATED_ROWS }, maxSize);
}

/**
 * The gradient that gates and factors stand for.
 * @param {Layout} gradient @param {Layout} layout of both @param {Uint32Array} gates @param {Float32Array} factors their texels, a line for each row group
 * @returns {Float32Array} [rows, columns]
 */
export function ungated({ rows, columns, texelsPerRow }, { texelsPerRow: width }, gates, factors) {
  const out = new Float32Array(rows * columns);
  for (let r = 0; r < rows; r++) {
    const line = Math.floor(r / GATED_ROWS) * width;
    const dy = factors[(line + texelsPerRow) * 4 + (r % GATED_ROWS)];
    for (let c = 0; c < columns; c++) {
      const open = (gates[line + (c >> 2)] >>> (4 * (r % GATED_ROWS) + (c & 3))) & 1;
      if (open) out[r * columns + c] = dy * factors[4 * line + c];
    }
  }
  return out;
}
