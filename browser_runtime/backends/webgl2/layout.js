// Layout: where a logical tensor's elements lie in a texture array. Pure arithmetic; the storage format is defined here, once.
//
// A tensor is a matrix [rows, columns] (samples or weight rows, times columns). Row r lies in layer r mod R ("rows interleave over R
// layers"), in row group floor(r / R). A texel holds 4 columns.
// Plain: column texel n of group g lies at x = n, y = g. Folded, where the rows are very short or the matrix is longer or wider than a
// texture: texel t = g * texelsPerRow + n lies at x = t mod width, y = floor(t / width), width a power of two.
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
 * @property {boolean} folded
 */

export const ceilDiv = (/** @type {number} */ a, /** @type {number} */ b) => Math.floor((a + b - 1) / b);
export const roundUp = (/** @type {number} */ a, /** @type {number} */ b) => ceilDiv(a, b) * b;

/** A batch's rows are padded to a multiple of this: whole row groups whatever R is, and as many samples as kernels take at once. */
export const ROW_ALIGNMENT = 16;

/** Fragments run in quads of 2 x 2, so a texture one texel wide would idle half of them. */
const NARROW = 4;

/**
 * @param {{rows: number, columns: number, layers: number, bias?: boolean}} matrix
 * @param {number} maxSize MAX_TEXTURE_SIZE
 * @returns {Layout}
 */
export function layoutOf({ rows, columns, layers, bias = false }, maxSize) {
  const texelsPerRow = ceilDiv(columns, 4);
  // The kernel of a layer is read 4 rows at a time: the bias starts past the rows that the last read may touch.
  const biasRow = bias ? roundUp(rows, Math.max(4, layers)) : -1;
  const groups = ceilDiv(bias ? biasRow + 1 : rows, layers);
  const folded = texelsPerRow < NARROW || texelsPerRow > maxSize || groups > maxSize;
  return { rows, columns, layers, texelsPerRow, groups, texels: groups * texelsPerRow, biasRow, folded };
}

/**
 * Width and height of a texture for a layout.
 * @param {{texels: number, texelsPerRow: number, groups: number, folded: boolean}} layout
 * @param {number} maxSize MAX_TEXTURE_SIZE
 * @returns {{width: number, height: number}|null} null where it does not fit
 */
export function extent({ texels, texelsPerRow, groups, folded }, maxSize) {
  if (!folded) return { width: texelsPerRow, height: groups };
  let width = 1;
  while (width * width < texels) width *= 2;
  return width <= maxSize ? { width, height: ceilDiv(texels, width) } : null;
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
 * Where a row's first texel stands among the texels of a texture array.
 * @param {Layout} layout @param {{width: number, height: number}} texture @param {number} row
 */
export function texelOf({ layers, texelsPerRow, folded }, { width, height }, row) {
  return (row % layers) * width * height + Math.floor(row / layers) * (folded ? texelsPerRow : width);
}

/**
 * Packs rows of a matrix into the texels of its layers.
 * @param {Layout} layout
 * @param {ArrayLike<number>} data row-major [rows, columns]
 * @param {ArrayLike<number>|null} bias [columns]
 * @param {{width: number, height: number}} texture
 * @returns {Float32Array} [layers, height, width, 4]
 */
export function pack(layout, data, bias, texture) {
  const { rows, columns, layers, biasRow } = layout;
  const out = new Float32Array(layers * texture.width * texture.height * 4);
  const put = (/** @type {number} */ row, /** @type {ArrayLike<number>} */ source, /** @type {number} */ from) => {
    const at = texelOf(layout, texture, row) * 4;
    for (let c = 0; c < columns; c++) out[at + c] = source[from + c];
  };
  for (let r = 0; r < rows; r++) put(r, data, r * columns);
  if (bias && biasRow >= 0) put(biasRow, bias, 0);
  return out;
}

/**
 * The inverse of `pack`.
 * @param {Layout} layout @param {Float32Array} texels @param {{width: number, height: number}} texture
 * @returns {{data: Float32Array, bias: Float32Array|null}}
 */
export function unpack(layout, texels, texture) {
  const { rows, columns, biasRow } = layout;
  const row = (/** @type {number} */ r) => {
    const at = texelOf(layout, texture, r) * 4;
    return texels.subarray(at, at + columns);
  };
  const data = new Float32Array(rows * columns);
  for (let r = 0; r < rows; r++) data.set(row(r), r * columns);
  return { data, bias: biasRow >= 0 ? row(biasRow).slice() : null };
}
