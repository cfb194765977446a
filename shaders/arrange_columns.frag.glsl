// arrange_columns: the columns of X, 8 by 8, as uniform blocks hold them     then: affine_grad_weights
// X [M,K]  ->  A [K/8, 2 M], BLOCKS_PER_LINE of its rows side by side   texel 2 m + i of row g is column texel 2 g + i of row m, one texel a fragment;
// with SPREAD those of a row group of spread weights
// Exact.
// In the bias's row each sample is 1, 0, 0 ...; texels past a sample's last one are written as 0.
// Reference: browser_runtime/reference/dense.js
void main() {
  ivec2 place = fragmentPlace();
  int block = place.x * BLOCKS_PER_LINE + place.y / BLOCK_TEXELS, texel = place.y % BLOCK_TEXELS;
#ifdef SPREAD
  int m = texel >> 1, k = (block >> 2 << 3) + (block & 3) + 4 * (texel & 1);
#else
  int m = texel >> 1, k = 2 * block + (texel & 1);
#endif
  vec4 x = k < X_TEXELS_PER_ROW ? X_fetch(X_layer(m), X_base(m), k) : vec4(0.);
  STORE(oA[0], block == BIAS_BLOCK ? vec4((texel & 1) == 0 ? 1. : 0., 0., 0., 0.) : x);
}
