// reduce_rows: sums the row losses, and the accuracies, of a batch; each batch in flight is a slot: a layer of L and C
// L, C [slots] layers of texels with up to 4 rows each, or one lane for one  ->  S [PARTS, slots]: (sum of L, 1 if it is not finite, sum of C, 1: a texel that was written)
// In training the norm N of the gradient comes along where there is one, instead of the accuracies, in the first part.
// One fragment a slot and part of T texels: about 4,096, or a row group's where these are more; the host adds the parts in float64.
// Accumulates in blocks of 64 texels, f32; error <= ~ (64 + T/64) * 2^-24 * sum|l|
// The rows of L and C past the batch are 0.
// Reference: browser_runtime/reference/losses.js
#include "lib/math.glsl"

// TEXELS are taken at once, so that a GPU waits for all their fetches together; 1 is the least to compile. They divide a block, and the texels of L.
#define GROUP(j) ((texel + j) / L_TEXELS_PER_ROW)
#define COLUMN(j) ((texel + j) % L_TEXELS_PER_ROW)
#ifdef WITH_ACCURACY
#define ADD(j) block += L_fetch(slot, L_group(GROUP(j)), COLUMN(j)); blockCorrect += C_fetch(slot, C_group(GROUP(j)), COLUMN(j));
#else
#define ADD(j) block += L_fetch(slot, L_group(GROUP(j)), COLUMN(j));
#endif

void main() {
  int slot = int(gl_FragCoord.x), part = int(gl_FragCoord.y) % PARTS;
  int first = part * TEXELS_OF_PART, last = min(first + TEXELS_OF_PART, L_GROUPS * L_TEXELS_PER_ROW);
  vec4 loss = vec4(0.), correct = vec4(0.);
  for (int start = first; start < last; start += BLOCK) {
    vec4 block = vec4(0.), blockCorrect = vec4(0.);
    int end = min(start + BLOCK, last);
    for (int texel = start; texel < end; texel += TEXELS) { EACH_TEXEL(ADD) }
    loss += block;
    correct += blockCorrect;
  }
  float total = dot(loss, vec4(1.));
  float beside = dot(correct, vec4(1.));
#ifdef WITH_NORM
  if (part == 0) beside = N_fetch(slot, N_group(0), 0).x;
#endif
  STORE(oS[0], vec4(total, tg_isfinite(total) ? 0. : 1., beside, 1.));
}
