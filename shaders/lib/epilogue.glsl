// epilogue: keeps the layout's promise that lanes past the last column and rows past the last row are zero.

// Selects instead of multiplying: 0 * NaN is NaN, and padding must be zero even then.
vec4 padded(vec4 value, int column4, int row) {
  bvec4 inside = lessThan(ivec4(0, 1, 2, 3) + 4 * column4, ivec4(row < uRows ? COLUMNS : 0));
  return mix(vec4(0.), value, inside);
}
