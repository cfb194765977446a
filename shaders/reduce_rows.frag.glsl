// reduce_rows: sums the row losses, and the accuracies, of a batch; one fragment a slot, each slot a layer of L and C
// L, C [slots] layers of texels with 4 rows each  ->  S [1, slots]: (sum of L, 1 if it is not finite, sum of C, 0)
// Accumulates in blocks of about 64 texels, f32; error <= ~ (64 + M/256) * 2^-24 * sum|l|
// The rows of L and C past the batch are 0.
// Reference: browser_runtime/reference/losses.js
#include "lib/math.glsl"

void main() {
  int slot = int(gl_FragCoord.x);
  vec4 loss = vec4(0.), correct = vec4(0.);
  for (int start = 0; start < L_GROUPS; start += BLOCK) {
    vec4 part = vec4(0.), partCorrect = vec4(0.);
    int end = min(start + BLOCK, L_GROUPS);
    for (int g = start; g < end; g++) {
      for (int n = 0; n < L_TEXELS_PER_ROW; n++) {
        part += L_fetch(slot, L_group(g), n);
#ifdef WITH_ACCURACY
        partCorrect += C_fetch(slot, C_group(g), n);
#endif
      }
    }
    loss += part;
    correct += partCorrect;
  }
  float total = dot(loss, vec4(1.));
  STORE(oS[0], vec4(total, tg_isfinite(total) ? 0. : 1., dot(correct, vec4(1.)), 0.));
}
