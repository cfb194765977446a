// update: one optimizer step of a parameter whose gradient was stored     after: affine_grad_weights, gated_grad_weights
// W [K,N], its states, DW [SPLITS,K,N], with TURNED [N,K]  ->  W and its states   ROWS weight rows and 4 columns a fragment; DW may be spread over other layers
// Adds the SPLITS parts of the gradient in their order, f32; then element by element, rounding only.
// Padding stays 0: the gradient is 0 there, and the weight and its states began so.
// Reference: browser_runtime/reference/optimizers.js
#include "lib/epilogue.glsl"
#include "lib/optimizer.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
#ifdef TURNED
  // The fragment's weight rows are lanes of a column texel, in which the bias is behind all others.
  int first = ROW_OF(group, 0), texel = group == BIAS_GROUP ? DW_TEXELS_PER_ROW - 1 : first >> 2;
#define COLUMN(j) DW_fetch(DW_layer(4 * n + j), DW_base(4 * n + j), texel)
  mat4 gradients = transpose(mat4(COLUMN(0), COLUMN(1), COLUMN(2), COLUMN(3)));
#define OUT(i) UPDATE(i, gradients[(first + i) & 3], ROW_OF(group, i))
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
