// update: one optimizer step of a parameter whose gradient was stored     after: affine_grad_weights, gated_grad_weights
// W [K,N], its states, DW [SPLITS,K,N], with TURNED [N,K]  ->  W and its states   ROWS weight rows and 4 columns a fragment; DW may be spread over other layers
// Adds the SPLITS parts of the gradient in their order, f32; then element by element, rounding only.
// Padding stays 0: the gradient is 0 there, and the weight and its states began so.
// Reference: browser_runtime/reference/optimizers.js
#include "lib/epilogue.glsl"
#include "lib/optimizer.glsl"

#ifdef TURNED
// Four weight rows are the lanes of a column texel; the biases of 8 columns are first lanes of one texel behind all of these.
mat4 fourRows(int row, int n) {
  int column = 4 * n, texel = min(row >> 2, DW_TEXELS_PER_ROW - 1);
  if (row == BIAS_ROW) {
    int place = column >> 3;
    column = 8 * (BIASES_FROM + place / DW_TEXELS_PER_ROW) + (column & 7);
    texel = place % DW_TEXELS_PER_ROW;
  }
#define COLUMN(j) DW_fetch(DW_layer(column + j), DW_base(column + j), texel)
  return transpose(mat4(COLUMN(0), COLUMN(1), COLUMN(2), COLUMN(3)));
}
#endif

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
#ifdef TURNED
  mat4 gradients = fourRows(ROW_OF(group, 0), n);
#if ROWS == 8
  mat4 others = fourRows(ROW_OF(group, 4), n);
#else
#define others gradients
#endif
#define OUT(i) UPDATE(i, (i < 4 ? gradients : others)[ROW_OF(group, i) & 3], ROW_OF(group, i))
#else
  // DW's bias row need not be W's: the bias starts a row group of its own in each.
  int shifted = group == BIAS_GROUP ? DW_BIAS_ROW - BIAS_ROW : 0;
#define OUT(i) { \
    int row = ROW_OF(group, i) + shifted; \
    vec4 g = vec4(0.); \
    if (DW_BIAS_ROW < 0 ? row < DW_GROUPS * DW_LAYERS : row <= DW_BIAS_ROW) { \
      for (int s = 0; s < SPLITS; s++) g += DW_fetch(DW_layer(row), DW_base(row + s * DW_SPLIT_ROWS), n); \
    } \
    UPDATE(i, g, row - shifted) }
#endif
  EACH_ROW(OUT)
}
