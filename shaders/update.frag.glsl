// update: one optimizer step of a parameter whose gradient was stored     after: affine_grad_weights
// W [K,N], its states, DW [K,N]  ->  W and its states   ROWS weight rows and 4 columns a fragment; DW may be spread over other layers than W
// Element by element; rounding only.
// Padding stays 0: gradient, weight and state are 0 there.
// Reference: browser_runtime/reference/optimizers.js
#include "lib/optimizer.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  // DW's bias row need not be W's: the bias starts a row group of its own in each.
  int shifted = group == BIAS_GROUP ? DW_BIAS_ROW - BIAS_GROUP * ROWS : 0;
#define OUT(i) { \
    int row = group * ROWS + i + shifted; \
    vec4 g = row <= DW_BIAS_ROW ? DW_fetch(DW_layer(row), DW_base(row), n) : vec4(0.); \
    UPDATE(i, g) }
  EACH_ROW(OUT)
}
