// arrange: the rows of X, 8 by 8, as uniform blocks hold them     then: affine, affine_grad_input
// X [M,K]  ->  A [M/8, 8 K]   texel 8 k + i of line g is column texel k of row 8 g + i; one texel a fragment
// Exact.
// Texels past a row's last one, which pad a line to 256 bytes, are written as 0.
// Reference: browser_runtime/reference/dense.js
void main() {
  ivec2 place = fragmentPlace();
  int row = 8 * place.x + (place.y & 7), k = place.y >> 3;
  STORE(oA[0], k < X_TEXELS_PER_ROW ? X_fetch(X_layer(row), X_base(row), k) : vec4(0.));
}
