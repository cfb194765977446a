// concat: the channels of A, then those of B, pixel by pixel     backward: slice_channels
// A [M,P,SPLIT]  B [M,P,C - SPLIT]  ->  Y [M,P,C]   ROWS samples and 4 channels of a pixel a fragment
// Exact.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/move.js
#include "lib/epilogue.glsl"
#include "lib/lanes.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int pixel = n / TEXELS_PER_PIXEL, channel = 4 * channelTexel(n);
  bvec4 isA = lessThan(ivec4(0, 1, 2, 3) + channel, ivec4(SPLIT));
  int a = pixel * A_TEXELS_PER_PIXEL + min(channel / 4, A_TEXELS_PER_PIXEL - 1);
  // Where the texel's first channel would lie in B, perhaps before its first texel: those lanes are A's. A shift rounds down, a division does not.
  int first = (channel - SPLIT) >> 2;
  ivec2 b = pixel * B_TEXELS_PER_PIXEL + clamp(ivec2(first, first + 1), 0, B_TEXELS_PER_PIXEL - 1);
#define OUT(i) { \
    int row = group * ROWS + i; \
    vec4 ofA = A_fetch(A_layer(row), A_base(row), a); \
    vec4 ofB = across(B_fetch(B_layer(row), B_base(row), b.x), B_fetch(B_layer(row), B_base(row), b.y)); \
    STORE(oY[i], padded(mix(ofB, ofA, isA), n, row)); }
  EACH_ROW(OUT)
}
