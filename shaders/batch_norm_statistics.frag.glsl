// batch_norm_statistics: mean and variance of each channel over the batch's samples and pixels; running statistics move towards them     then: batch_norm
// X [M,H,W,C], or with MERGE the moments M [PARTS,2,C] of its parts; RUNNING_MEAN, RUNNING_VAR [C]  ->  MEAN, VARIANCE (over n), RUNNING_MEAN, RUNNING_VAR [C]
// r = KEPT r + MOMENTUM b, as PyTorch, with the variance over n - 1. 4 channels a fragment.
// Two passes, mean first, over elements or over parts, whose moments merge (Chan, Golub, LeVeque): squares + n (mean of the part - mean)^2.
// Adds up in blocks of 64, f32; error of the mean <= ~ k 2^-24 mean|x|, of the variance <= ~ k 2^-24 variance + error of the mean * deviation, k below 300
// Padding lanes are 0 because X's are, and the running ones began so.
// Reference: browser_runtime/reference/batch_norm.js
#include "lib/moments.glsl"

void main() {
  int c = fragmentPlace().y;
  int count = uRows * PIXELS;
  vec4 mean, squares;
#ifdef MERGE
  vec4 total = vec4(0.);
#define EACH_PART(ADD) \
  for (int start = 0; start < PARTS; start += BLOCK) { \
    vec4 block = vec4(0.); \
    int end = min(start + BLOCK, PARTS); \
    for (int p = start; p < end; p++) { \
      float n = float(elementsBefore(firstSpot(p + 1)) - elementsBefore(firstSpot(p))); \
      ADD \
    } \
    total += block; \
  }
  EACH_PART(block += n * M_fetch(0, M_base(2 * p), c);)
  mean = total / float(count);
  total = vec4(0.);
  EACH_PART(vec4 d = M_fetch(0, M_base(2 * p), c) - mean; block += M_fetch(1, M_base(2 * p), c) + n * d * d;)
  squares = total;
#else
  momentsOf(0, firstSpot(PARTS), c, mean, squares);
#endif
#ifdef WITH_BATCH
  STORE(oMEAN[0], mean);
  STORE(oVARIANCE[0], squares / float(count));
#endif
#ifdef MOMENTUM
  STORE(oRUNNING_MEAN[0], KEPT * RUNNING_MEAN_fetch(0, RUNNING_MEAN_base(0), c) + MOMENTUM * mean);
  STORE(oRUNNING_VAR[0], KEPT * RUNNING_VAR_fetch(0, RUNNING_VAR_base(0), c) + MOMENTUM * (squares / float(count - 1)));
#endif
}
