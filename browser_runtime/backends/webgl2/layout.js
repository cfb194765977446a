// Layout: where a logical tensor's elements lie in a texture array. Pure arithmetic; the storage format is defined here, once.
//
// A tensor is a matrix [rows, columns] (samples or weight rows, times columns). Row r lies in layer r mod R ("rows interleave over R
// layers"), in row group floor(r / R). A texel holds 4 columns. Texel t = group * texelsPerRow + floor(column / 4) of every layer lies at
// x = t mod width, y = floor(t / width), width a power of two: any tensor folds into any texture that has enough texels.
// Lanes past the last column and rows past the last row are zero, always: kernels rely on it and every epilogue writes it.
// A bias is a row of its own, first in a row group of its own, so that no block over the weight rows meets it.

/**
 * @typedef {object} Layout
 * @property {number} rows rows that hold data, the bias row not counted
 * @property {number} columns
 * @property {number} layers R, a power of two
 * @property {number} texelsPerRow
 * @property {number} groups row groups, the bias's included
 * @property {number} texels in each layer
 * @property {number} biasRow -1 where there is none
 */

export const ceilDiv = (/** @type {number} */ a, /** @type {number} */ b) => Math.floor((a + b - 1) / b);
export const roundUp = (/** @type {number} */ a, /** @type {number} */ b) => ceilDiv(a, b) * b;

/** Every batched tensor's rows are a multiple of this, whatever its R, so that batches start on whole row groups. */
export const ROW_ALIGNMENT = 8;

/**
 * @param {{rows: number, columns: number, layers: number, bias?: boolean}} matrix
 * @returns {Layout}
 */
export function layoutOf({ rows, columns, layers, bias = false }) {
  const texelsPerRow = ceilDiv(columns, 4);
  // The kernel of a layer is read 4 rows at a time: the bias starts past the rows that the last read may touch.
  const biasRow = bias ? roundUp(rows, Math.max(4, layers)) : -1;
  const groups = ceilDiv(bias ? biasRow + 1 : rows, layers);
  return { rows, columns, layers, texelsPerRow, groups, texels: groups * texelsPerRow, biasRow };
}

/**
 * Width and height of a texture that holds `texels` in each layer: about square, since a fragment shader runs on quads of 2 x 2.
 * @param {number} texels
 * @param {number} maxSize MAX_TEXTURE_SIZE
 * @returns {{shift: number, width: number, height: number}|null} null where it does not fit
 */
export function fold(texels, maxSize) {
  let shift = 0;
  while (4 ** shift < texels) shift++;
  const width = 2 ** shift;
  const height = ceilDiv(texels, width);
  return width <= maxSize ? { shift, width, height } : null;
}

/**
 * The largest power of two of rows that a fragment may write: at most `wanted`, and `outputs` render targets a row plus `extra` must fit.
 * @param {number} wanted @param {number} maxDrawBuffers @param {{outputs?: number, extra?: number}} targets
 */
export function rowsPerFragment(wanted, maxDrawBuffers, { outputs = 1, extra = 0 } = {}) {
  let rows = 1;
  while (rows * 2 <= wanted && rows * 2 * outputs + extra <= maxDrawBuffers) rows *= 2;
  return rows;
}

/**
 * Packs rows of a matrix into the texels of its layers.
 * @param {Layout} layout
 * @param {ArrayLike<number>} data row-major [rows, columns]
 * @param {ArrayLike<number>|null} bias [columns]
 * @param {number} texelsAllocated width * height of the texture
 * @returns {Float32Array} [layers, texelsAllocated, 4]
 */
export function pack(layout, data, bias, texelsAllocated) {
  const { rows, columns, layers, texelsPerRow, biasRow } = layout;
  const out = new Float32Array(layers * texelsAllocated * 4);
  const put = (/** @type {number} */ row, /** @type {ArrayLike<number>} */ source, /** @type {number} */ from) => {
    const at = ((row % layers) * texelsAllocated + Math.floor(row / layers) * texelsPerRow) * 4;
    for (let c = 0; c < columns; c++) out[at + c] = source[from + c];
  };
  for (let r = 0; r < rows; r++) put(r, data, r * columns);
  if (bias && biasRow >= 0) put(biasRow, bias, 0);
  return out;
}

/**
 * The inverse of `pack`.
 * @param {Layout} layout @param {Float32Array} texels @param {number} texelsAllocated
 * @returns {{data: Float32Array, bias: Float32Array|null}}
 */
export function unpack(layout, texels, texelsAllocated) {
  const { rows, columns, layers, texelsPerRow, biasRow } = layout;
  const at = (/** @type {number} */ row) => ((row % layers) * texelsAllocated + Math.floor(row / layers) * texelsPerRow) * 4;
  const data = new Float32Array(rows * columns);
  for (let r = 0; r < rows; r++) data.set(texels.subarray(at(r), at(r) + columns), r * columns);
  return { data, bias: biasRow >= 0 ? texels.slice(at(biasRow), at(biasRow) + columns) : null };
}
