// norm_grad_weights: gradient of gamma, sums of DY x', and of beta, sums of DY, over samples and pixels; x' the normalized X     then: update, or sum_parts
// X [M,H,W,C]  DY [M,H,W,C]  S [M,sets,2], or with BATCH MEAN [C] and VARIANCE [C]  ->  DW [SPLITS,1,C], that of beta in its bias row
// The reduction is long and the outputs few, so SPLITS fragments share it, each for SPOTS pixels of 4 samples.
// Accumulates 64 pixels of 4 samples at a time, f32; error <= ~ (4 * 64 + SPOTS / 64 + SPLITS) * 2^-24 * sum|dy x'|
// Padding is written as 0.
// Reference: browser_runtime/reference/sample_norm.js
// Reference: browser_runtime/reference/batch_norm.js
#include "lib/epilogue.glsl"
#include "lib/spots.glsl"
#ifndef BATCH
#include "lib/sets.glsl"
#endif

void main() {
  ivec2 place = fragmentPlace();
  int split = place.x / WEIGHT_GROUPS;
  int group = place.x - split * WEIGHT_GROUPS;
  int c = place.y;
  int first = firstSpot(split), last = firstSpot(split + 1);
  vec4 total = vec4(0.);
#ifdef BATCH
  vec4 mean = MEAN_fetch(0, MEAN_base(0), c), inverse = 1. / sqrt(VARIANCE_fetch(0, VARIANCE_base(0), c) + EPS);
#define STATISTICS(row)
#else
  vec4 mean, inverse;
#define STATISTICS(row) OF_SETS(S_fetch, S_layer(row), S_base(row), pixel, c, mean, inverse)
#endif

#define ADD_GAMMA(row) { STATISTICS(row) block += DY_fetch(DY_layer(row), DY_base(row), n) * ((X_fetch(X_layer(row), X_base(row), n) - mean) * inverse); }
#define ADD_BETA(row) block += DY_fetch(DY_layer(row), DY_base(row), n);
  if (group == 0) {
    EACH_SPOT(first, last, ADD_GAMMA)
  } else if (group == BIAS_GROUP) {
    EACH_SPOT(first, last, ADD_BETA)
  }
#define OUT(i) STORE(oDW[i], paddedWeight(i == 0 ? total : vec4(0.), c, group * ROWS + i));
  EACH_ROW(OUT)
}
