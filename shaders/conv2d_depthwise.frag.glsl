// conv2d_depthwise: conv2d where every channel is a group of its own with one filter     backward: conv2d_depthwise_grad_input, _grad_weights
// X [M,H,W,C]  W [KH,KW,1,C] and b in W's bias row  ->  Y [M,OH,OW,C]   ROWS samples and 4 channels of a pixel a fragment
// Lanes multiply lanes.
// Accumulates over the taps of a kernel row, then over kernel rows, f32; error <= ~ (KW + KH) * 2^-24 * sum|x||w|
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/conv2d.js
#include "lib/activation.glsl"
#include "lib/bias.glsl"
#include "lib/epilogue.glsl"
#include "lib/taps.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int channels = channelTexel(n);
  ivec2 made = ivec2(n / TEXELS_PER_PIXEL / MADE.y, n / TEXELS_PER_PIXEL % MADE.y);
  vec4 total[ROWS];
  int layer[ROWS];
  int base[ROWS];
#define LOCATE(i) total[i] = vec4(0.); layer[i] = X_layer(group * ROWS + i); base[i] = X_base(group * ROWS + i);
  EACH_ROW(LOCATE)

  EACH_TAP(readRow, readColumn, made)
    int texel = (y * READ.y + x) * TEXELS_PER_PIXEL + channels;
    vec4 w = W_fetch(W_layer(4 * tap), W_base(4 * tap), channels);
#define ADD(i) part[i] += X_fetch(layer[i], base[i], texel) * w;
    EACH_ROW(ADD)
  END_EACH_TAP

  vec4 bias = biasOf(channels);
#define OUT(i) STORE(oY[i], padded(activate(total[i] + bias), n, group * ROWS + i));
  EACH_ROW(OUT)
}
