// conv2d_grouped: conv2d for groups of any number of channels     backward: conv2d_grouped_grad_input, conv2d_grouped_grad_weights
// X [M,H,W,C]  W [KH,KW,C/G,F] and b in W's bias row  ->  Y [M,OH,OW,F]   ROWS samples and 4 filters of a pixel a fragment
// The filters of a texel may be of several groups, so each takes its own channel, one at a time.
// Accumulates over C/G and the taps of a kernel row, then over kernel rows, f32; error <= ~ (KW C/G + KH) * 2^-24 * sum|x||w|
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/conv2d.js
#include "lib/activation.glsl"
#include "lib/bias.glsl"
#include "lib/epilogue.glsl"
#include "lib/groups.glsl"
#include "lib/taps.glsl"

// Channel c of a pixel for each of 4 filters. Filters of one group take the same one.
vec4 channels(int layer, int base, int texel, ivec4 c) {
#if GROUP_MADE % 4 == 0
  return vec4(X_fetch(layer, base, texel + (c.x >> 2))[c.x & 3]);
#else
  return vec4(
    X_fetch(layer, base, texel + (c.x >> 2))[c.x & 3], X_fetch(layer, base, texel + (c.y >> 2))[c.y & 3],
    X_fetch(layer, base, texel + (c.z >> 2))[c.z & 3], X_fetch(layer, base, texel + (c.w >> 2))[c.w & 3]);
#endif
}

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int filters = channelTexel(n);
  ivec4 first = groupsOfFilters(filters) * GROUP_READ;
  ivec2 made = ivec2(n / TEXELS_PER_PIXEL / MADE.y, n / TEXELS_PER_PIXEL % MADE.y);
  vec4 total[ROWS];
  int layer[ROWS];
  int base[ROWS];
#define LOCATE(i) total[i] = vec4(0.); layer[i] = X_layer(group * ROWS + i); base[i] = X_base(group * ROWS + i);
  EACH_ROW(LOCATE)

  EACH_TAP(readRow, readColumn, made)
    int texel = (y * READ.y + x) * X_TEXELS_PER_PIXEL;
    int weights = tap * BLOCK;
    for (int c = 0; c < GROUP_READ; c++) {
      vec4 w = W_fetch(W_layer(weights + c), W_base(weights + c), filters);
#define ADD(i) part[i] += channels(layer[i], base[i], texel, first + c) * w;
      EACH_ROW(ADD)
    }
  END_EACH_TAP

  vec4 bias = biasOf(filters);
#define OUT(i) STORE(oY[i], padded(activate(total[i] + bias), n, group * ROWS + i));
  EACH_ROW(OUT)
}
