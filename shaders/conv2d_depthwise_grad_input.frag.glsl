// conv2d_depthwise_grad_input: conv2d_grad_input where every channel is a group of its own with one filter     forward: conv2d_depthwise
// DY [M,OH,OW,C]  W [KH,KW,1,C]  G [M,H,W,C]  ->  DX [M,H,W,C]   ROWS samples and 4 channels of a pixel a fragment
// Lanes multiply lanes.
// Accumulates over the taps of a kernel row, then over kernel rows, f32; error <= ~ (KW + KH) * 2^-24 * sum|dy||w|
// Padding lanes and rows are written as 0. G: what gives the slope of the activation that X was, lib/slope.glsl.
// Reference: browser_runtime/reference/conv2d.js
#include "lib/epilogue.glsl"
#include "lib/slope.glsl"
#include "lib/taps.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int channels = channelTexel(n);
  ivec2 read = ivec2(n / TEXELS_PER_PIXEL / READ.y, n / TEXELS_PER_PIXEL % READ.y);
  vec4 total[ROWS];
  int layer[ROWS];
  int base[ROWS];
#define LOCATE(i) total[i] = vec4(0.); layer[i] = DY_layer(group * ROWS + i); base[i] = DY_base(group * ROWS + i);
  EACH_ROW(LOCATE)

  EACH_TAP(madeRow, madeColumn, read)
    int texel = (y * MADE.y + x) * TEXELS_PER_PIXEL + channels;
    vec4 w = W_fetch(W_layer(4 * tap), W_base(4 * tap), channels);
#define ADD(i) part[i] += DY_fetch(layer[i], base[i], texel) * w;
    EACH_ROW(ADD)
  END_EACH_TAP

#define OUT(i) STORE(oDX[i], padded(SLOPED(total[i], n, group * ROWS + i), n, group * ROWS + i));
  EACH_ROW(OUT)
}
