// Layout: where a logical tensor's elements lie in a texture array. Pure arithmetic; the storage format is defined here, once.
//
// A tensor is a matrix [rows, columns]: samples or weight rows, times columns. Columns are pixels x channels (one pixel where the tensor is
// flat); a texel holds 4 channels of a pixel, so a pixel starts a texel. Row r lies in layer r mod R ("rows interleave over R layers"), in
// row group floor(r / R). Weight rows come in blocks, one for each tap of a convolution or pixel of a dense layer's input, and a block starts
// on a multiple of 4 rows: the 4 channels of an input texel always meet 4 consecutive weight rows, and flattening costs nothing.
// Plain: column texel n of group g lies at x = n, y = g. Folded, where rows are very short, weights have very few of them, or the matrix is longer
// or wider than a texture: texel t = g * texelsPerRow + n lies at x = t mod width, y = floor(t / width), width a power of two.
// Plain in quads, where each row group is a draw of its own (uniform_rows.js): two lines, so that its fragments fill quads of 2 x 2, and the four of a
// quad are neighbours, whose loads lie side by side. Column texel n of group g lies at x = 2 floor(n / 4) + n mod 2, y = 2 g + floor(n / 2) mod 2.
// Spread weights, over 8 layers: a row group has the rows of two input texels that are 4 apart, so that those of neighbours lie in the same 4 layers. Row r
// lies in layer r mod 4 + 4 (floor(r / 16) mod 2), in row group 4 floor(r / 32) + floor(r / 4) mod 4.
// Lanes past a pixel's last channel, and rows past a block's or the tensor's last row, are zero, always: kernels rely on it and every epilogue writes it.
// A bias is a row of its own, first in a row group of its own, so that no block over the weight rows meets it.
// In parts, which summed_parts.js says of some logits: sums that whoever reads them adds, all row groups of one behind those of the other.
// Where 3 of the 4 lanes would be padding in every texel a texture may have one: the same texels, which are fetched with zeros for the other lanes.
// Gated, which gated_gradients.js says of some gradients: bits and factors instead of numbers, a texel of bits for 8 rows and 4 columns; the gradient of weights that is
// made from them lies turned, [columns, rows].

/**
 * @typedef {object} Layout
 * @property {number} rows that hold data, the bias row not counted
 * @property {number} blockRows rows of a block
 * @property {number} blockStride rows from a block's start to the next one's
 * @property {number} columns pixels * channels
 * @property {number} channels
 * @property {number} texelsPerPixel
 * @property {number} layers R, a power of two
 * @property {number} texelsPerRow
 * @property {number} groups row groups, the bias's included
 * @property {number} texels in each layer
 * @property {number} biasRow -1 where there is none
 * @property {boolean} folded
 * @property {boolean} spread
 * @property {1|2} lines of a plain texture that a row group covers: two where it lies in quads
 * @property {number} [parts] whose sum it is, one behind the other, where it is more than one: who reads it adds them
 */

/** Bytes of textures for the data set and an epoch of it; a larger one is streamed. WebGL does not tell how much memory there is. */
export const RESIDENT_BYTES = 2 ** 30;

export const ceilDiv = (/** @type {number} */ a, /** @type {number} */ b) => Math.floor((a + b - 1) / b);
export const roundUp = (/** @type {number} */ a, /** @type {number} */ b) => ceilDiv(a, b) * b;

/** A batch's rows are padded to a multiple of this: whole row groups whatever R is, and as many samples as kernels take at once. */
export const ROW_ALIGNMENT = 16;

const LANE_BYTES = 4; // of every kind of numbers

/** Numbers that a texel of a texture holds. @typedef {1|4} Lanes */
/** What they are: float32, row numbers, or bits. @typedef {"float"|"int"|"uint"} Numbers */

/** Of what comes with the data. @param {{channels: number}} layout @returns {Lanes} */
export const lanesOf = ({ channels }) => (channels === 1 ? 1 : 4);

/** Bytes of a texture array. @param {{width: number, height: number, layers: number, lanes?: Lanes}} texture */
export const textureBytes = ({ width, height, layers, lanes = 4 }) => width * height * layers * lanes * LANE_BYTES;

export const SPREAD_LAYERS = 8;
/** Rows of the 8 texels whose rows share row groups where weights are spread. */
const SPREAD_ROWS = 32;

/** Fragments run in quads of 2 x 2, so a texture one texel wide would idle half of them; a renderer on the CPU shares out lines of quads to its threads. */
const NARROW = 4;

/**
 * @param {{rows: number, columns: number, layers: number, pixels?: number, blocks?: number, bias?: boolean, lines?: 1|2, spread?: boolean}} matrix
 *   `bias` is given for weights; of two lines it must fit a texture; spread it has 8 layers
 * @param {number} maxSize MAX_TEXTURE_SIZE
 * @returns {Layout}
 */
export function layoutOf({ rows, columns, layers, pixels = 1, blocks = 1, bias, lines = 1, spread = false }, maxSize) {
  const channels = columns / pixels;
  const texelsPerPixel = ceilDiv(channels, 4);
  const texelsPerRow = pixels * texelsPerPixel;
  const blockRows = rows / blocks;
  const blockStride = bias === undefined ? blockRows : roundUp(blockRows, 4);
  const allRows = roundUp(blocks * blockStride, spread ? SPREAD_ROWS : 1);
  // The bias starts past the rows that the last block's 4-row reads may touch.
  const biasRow = bias ? roundUp(allRows, layers) : -1;
  const groups = ceilDiv(bias ? biasRow + 1 : allRows, layers);
  const folded = lines === 1 && (texelsPerRow < NARROW || (bias !== undefined && groups < NARROW) || texelsPerRow > maxSize || groups > maxSize);
  return {
    rows, blockRows, blockStride, columns, channels, texelsPerPixel, layers, texelsPerRow, groups, texels: groups * texelsPerRow, biasRow, folded, spread, lines,
  };
}

/** Elements of a shape. @param {number[]} shape */
export const size = (shape) => shape.reduce((a, b) => a * b, 1);

/** The matrix of a parameter, or of its states and gradient: [...blocks, rows, columns]. @param {number[]} shape */
export function matrixOf(shape) {
  const blocks = size(shape.slice(0, -2));
  return { rows: blocks * (shape.at(-2) ?? 1), columns: shape.at(-1) ?? 1, blocks };
}

/** The columns of a batched tensor: [channels] or [height, width, channels]. @param {number[]} shape */
export function columnsOf(shape) {
  const pixels = size(shape.slice(0, -1));
  return { columns: pixels * (shape.at(-1) ?? 1), pixels };
}

/** Column texels of a row of a batched tensor. @param {number[]} shape */
export function texelsOf(shape) {
  const { columns, pixels } = columnsOf(shape);
  return pixels * ceilDiv(columns, pixels * 4);
}

/** What says how large a texture must be. @typedef {Pick<Layout, "texels"|"texelsPerRow"|"groups"|"folded"|"lines">} Extents */

/**
 * Width and height of a texture for a layout.
 * @param {Extents} layout
 * @param {number} maxSize MAX_TEXTURE_SIZE
 * @returns {{width: number, height: number}|null} null where it does not fit
 */
export function extent(layout, maxSize) {
  if (!layout.folded) return filled(layout, maxSize);
  let width = 1;
  while (width * width < layout.texels) width *= 2;
  return width <= maxSize ? { width, height: ceilDiv(layout.texels, width) } : null;
}

/** The texels that a tensor takes of a place whose lines are so wide, from its corner on. @param {Extents} layout @param {number} width */
export function filled({ texels, texelsPerRow, groups, folded, lines }, width) {
  if (folded) return { width: Math.min(width, texels), height: ceilDiv(texels, width) };
  return { width: lines === 1 ? texelsPerRow : 2 * ceilDiv(texelsPerRow, 4), height: groups * lines };
}

/** Of so many gradients of one layout, one below the other: they may exceed the height of a texture that one would fit.
 * @param {Layout} one @param {number} parts @param {number} maxSize MAX_TEXTURE_SIZE @returns {Layout} */
export const layoutInParts = (one, parts, maxSize) => {
  const groups = one.groups * parts;
  return { ...one, groups, texels: one.texels * parts, folded: one.folded || groups > maxSize };
};

export const isPowerOfTwo = (/** @type {number} */ n) => (n & (n - 1)) === 0;

/**
 * Of a texture with another tensor below what has that size, whose width must be a power of two where the other one is folded.
 * @param {{width: number, height: number}} size @param {Layout} below
 */
export function sizeAbove({ width, height }, below) {
  const wide = below.folded ? width : Math.max(width, filled(below, width).width);
  return { width: wide, height: height + filled(below, wide).height };
}

/** Row groups of one part. @param {Layout} layout */
export const groupsOfPart = ({ groups, parts = 1 }) => groups / parts;

/** Of a texture in which regions of these sizes lie one below the other. @param {{width: number, height: number}[]} sizes */
export const stackedSize = (sizes) => ({
  width: Math.max(...sizes.map(({ width }) => width)),
  height: sizes.reduce((sum, { height }) => sum + height, 0),
});

/** Bytes of a texture for each layout of what comes with the data; Infinity where one does not fit. @param {Layout[]} layouts @param {number} maxSize */
export function bytesOf(layouts, maxSize) {
  return layouts.reduce((sum, layout) => {
    const size = extent(layout, maxSize);
    return sum + (size && size.height <= maxSize ? textureBytes({ ...size, layers: layout.layers, lanes: lanesOf(layout) }) : Infinity);
  }, 0);
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
 * Where a row's column texel stands among the texels of a texture array.
 * @param {Layout} layout @param {{width: number, height: number}} texture @param {number} row @param {number} [n]
 */
export function texelOf({ layers, texelsPerRow, folded, spread, lines }, { width, height }, row, n = 0) {
  const group = spread ? 4 * Math.floor(row / SPREAD_ROWS) + ((row >> 2) & 3) : Math.floor(row / layers);
  const layer = spread ? (row & 3) + 4 * ((row >> 4) & 1) : row % layers;
  const x = lines === 1 ? n : 2 * (n >> 2) + (n & 1);
  const y = lines === 1 ? group : 2 * group + ((n >> 1) & 1);
  const texel = folded ? group * texelsPerRow + n : y * width + x;
  return layer * width * height + texel;
}

/**
 * Calls `visit(element, value)` for every value of a tensor: its place among the floats of the texture array, and in the row-major matrix.
 * @param {Layout} layout @param {{width: number, height: number, lanes?: Lanes}} texture
 * @param {(at: number, count: number, value: number) => void} visit `count` values from `value` on, whose floats are consecutive from `at` on
 */
function eachRun(layout, texture, visit) {
  const { rows, blockRows, blockStride, columns, channels, texelsPerPixel, lines } = layout;
  const { lanes = 4 } = texture;
  // Where a pixel fills its texels, a row is one run; in quads each texel is.
  const whole = channels % lanes === 0 || columns === channels ? columns : channels;
  const run = lines === 1 ? whole : 4;
  for (let i = 0; i < rows; i++) {
    const row = Math.floor(i / blockRows) * blockStride + (i % blockRows);
    for (let c = 0; c < columns; c += whole) {
      const first = (c / channels) * texelsPerPixel;
      for (let d = 0; d < whole; d += run) visit(texelOf(layout, texture, row, first + d / 4) * lanes, Math.min(run, whole - d), i * columns + c + d);
    }
  }
}

/** The place of a column's bias among the floats of the texture array. @param {Layout} layout @param {{width: number, height: number, lanes?: Lanes}} texture @param {number} column */
const biasAt = (layout, { lanes = 4, ...texture }, column) => texelOf(layout, texture, layout.biasRow, Math.floor(column / lanes)) * lanes + (column % lanes);

/**
 * Packs rows of a matrix into the texels of its layers.
 * @param {Layout} layout
 * @param {ArrayLike<number>} data row-major [rows, columns]
 * @param {ArrayLike<number>|null} bias [columns]
 * @param {{width: number, height: number, lanes?: Lanes}} texture
 * @returns {Float32Array} [layers, height, width, lanes]
 */
export function pack(layout, data, bias, texture) {
  const { width, height, lanes = 4 } = texture;
  const out = new Float32Array(layout.layers * width * height * lanes);
  eachRun(layout, texture, (at, count, value) => {
    for (let c = 0; c < count; c++) out[at + c] = data[value + c];
  });
  if (bias && layout.biasRow >= 0) for (let c = 0; c < layout.columns; c++) out[biasAt(layout, texture, c)] = bias[c];
  return out;
}

/**
 * The inverse of `pack`.
 * @param {Layout} layout @param {Float32Array} texels @param {{width: number, height: number, lanes?: Lanes}} texture
 * @returns {{data: Float32Array, bias: Float32Array|null}}
 */
export function unpack(layout, texels, texture) {
  const { rows, columns, biasRow, parts = 1, texelsPerRow } = layout;
  const data = new Float32Array(rows * columns);
  // Lines or texels from a part to the next one, as floats.
  const step = groupsOfPart(layout) * (layout.folded ? texelsPerRow : layout.lines * texture.width) * (texture.lanes ?? 4);
  eachRun(layout, texture, (at, count, value) => {
    data.set(texels.subarray(at, at + count), value);
    for (let part = 1; part < parts; part++) for (let c = 0; c < count; c++) data[value + c] += texels[at + part * step + c];
  });
  return { data, bias: biasRow < 0 ? null : Float32Array.from({ length: columns }, (_, c) => texels[biasAt(layout, texture, c)]) };
}

/** Rows of a texel of gates: bit 4 i + c is that of row i and column c. */
export const GATED_ROWS = 8;
/** Column texels behind the gates, for what 8 rows are multiplied by. */
export const ROW_TEXELS = GATED_ROWS / 4;

/**
 * Of the gates, and of the factors beside them, which are render targets of the same draw: column texel n has those of V's rows 4n to 4n + 3, the last
 * two those of DY's 8 rows.
 * @param {Layout} gradient @param {number} maxSize MAX_TEXTURE_SIZE
 */
export const gatesLayout = ({ rows, texelsPerRow }, maxSize) =>
  layoutOf({ rows: rows / GATED_ROWS, columns: 4 * (texelsPerRow + ROW_TEXELS), layers: 1 }, maxSize);

/**
 * A weight gradient as a product with gates makes it: turned, so that a fragment's 8 rows are 8 columns of the gates. Row groups behind them have the
 * biases: those of the g-th 8 columns are first lanes of the g-th texel there. So all lines are as long as those of the layer's inputs.
 * @param {{shape: number[], bias?: boolean}} gradient @param {number} maxSize MAX_TEXTURE_SIZE
 */
export function turnedLayout({ shape, bias }, maxSize) {
  const { rows, columns, blocks } = matrixOf(shape);
  const texels = blocks * ceilDiv(rows / blocks, 4);
  const groups = ceilDiv(columns, GATED_ROWS);
  return layoutOf({ rows: GATED_ROWS * (groups + (bias ? ceilDiv(groups, texels) : 0)), columns: 4 * texels, layers: GATED_ROWS }, maxSize);
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
