// epilogue: keeps the layout's promise that lanes past a pixel's last channel and rows past the last row are zero.

// Which 4 channels of its pixel a column texel holds.
#if TEXELS_PER_PIXEL == TEXELS_PER_ROW
int channelTexel(int n) { return n; }
#else
int channelTexel(int n) { return n % TEXELS_PER_PIXEL; }
#endif

// Selects instead of multiplying: 0 * NaN is NaN, and padding must be zero even then.
// Of a weight matrix: rows past a block's last, and all of the bias's row group but its first row.
vec4 paddedWeight(vec4 value, int n, int row) {
#if BLOCK_STRIDE == BLOCK_END
  bool inBlock = row < BLOCK_ROWS;
#else
  bool inBlock = row % BLOCK_STRIDE < BLOCK_ROWS && row < BLOCK_END;
#endif
  bool live = inBlock || row == BIAS_ROW;
  return mix(vec4(0.), value, lessThan(ivec4(0, 1, 2, 3) + 4 * n, ivec4(live ? COLUMNS : 0)));
}

// Of a batched tensor.
vec4 padded(vec4 value, int n, int row) {
  bvec4 inside = lessThan(ivec4(0, 1, 2, 3) + 4 * channelTexel(n), ivec4(row < uRows ? CHANNELS : 0));
  return mix(vec4(0.), value, inside);
}
