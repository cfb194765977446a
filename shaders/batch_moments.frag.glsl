// batch_moments: mean and sum of squared deviations of each channel, over parts of the samples and pixels     then: batch_norm_statistics
// X [M,H,W,C]  ->  M [PARTS,2,C]   4 channels of a part a fragment
// Two passes, mean first; each adds 64 pixels of 4 samples at a time, f32; error of the mean <= ~ (128 + SPOTS / 64) * 2^-24 * mean|x|
// Padding lanes are 0 because X's are. A part behind a short batch is 0.
// Reference: browser_runtime/reference/batch_norm.js
#include "lib/moments.glsl"

void main() {
  ivec2 place = fragmentPlace();
  vec4 mean, squares;
  momentsOf(firstSpot(place.x), firstSpot(place.x + 1), place.y, mean, squares);
  STORE(oM[0], mean);
  STORE(oM[1], squares);
}
