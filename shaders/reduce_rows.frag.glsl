// reduce_rows: sums the row losses, and the accuracies, of a batch; one fragment a slot, each slot a layer of L and C
// L, C [slots] layers of texels with 4 rows each  ->  S [1, slots]: (sum of L, 1 if it is not finite, sum of C, 0)
// Accumulates in blocks of 64 texels (256 rows), f32; error <= ~ (256 + M/256) * 2^-24 * sum|l|
// The rows of L and C past the batch are 0.
// Reference: browser_runtime/reference/losses.js
#include "lib/math.glsl"

void main() {
  int slot = int(gl_FragCoord.x);
  vec4 loss = vec4(0.), correct = vec4(0.);
  for (int start = 0; start < L_TEXELS; start += 64) {
    vec4 part = vec4(0.), partCorrect = vec4(0.);
    int end = min(start + 64, L_TEXELS);
    for (int t = start; t < end; t++) {
      part += L_fetch(slot, t);
#ifdef WITH_ACCURACY
      partCorrect += C_fetch(slot, t);
#endif
    }
    loss += part;
    correct += partCorrect;
  }
  float total = dot(loss, vec4(1.));
  STORE(oS[0], vec4(total, tg_isfinite(total) ? 0. : 1., dot(correct, vec4(1.)), 0.));
}
