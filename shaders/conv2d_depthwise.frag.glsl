// conv2d_depthwise: conv2d where every channel is a group of its own with one filter     backward: conv2d_depthwise_grad_input, _grad_weights
// X [M,H,W,C]  W [KH,KW,1,C] and b in W's bias row  ->  Y [M,OH,OW,C]   ROWS samples and 4 channels of a pixel a fragment
// Lanes multiply lanes.
// Accumulates over the taps of a kernel row, then over kernel rows, f32; error <= ~ (KW + KH) * 2^-24 * sum|x||w|
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/conv2d.js
#include "lib/activation.glsl"
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

  for (int ky = 0; ky < WINDOW.x; ky++) {
    int y = readRow(made.x, ky);
    if (y < 0) continue;
    vec4 part[ROWS];
#define CLEAR(i) part[i] = vec4(0.);
    EACH_ROW(CLEAR)
    for (int kx = 0; kx < WINDOW.y; kx++) {
      int x = readColumn(made.y, kx);
      if (x < 0) continue;
      int texel = (y * READ.y + x) * TEXELS_PER_PIXEL + channels;
      int tap = 4 * (ky * WINDOW.y + kx);
      vec4 w = W_fetch(W_layer(tap), W_base(tap), channels);
#define ADD(i) part[i] += X_fetch(layer[i], base[i], texel) * w;
      EACH_ROW(ADD)
    }
#define FLUSH(i) total[i] += part[i];
    EACH_ROW(FLUSH)
  }

#if W_BIAS_ROW >= 0
  vec4 bias = W_fetch(W_layer(W_BIAS_ROW), W_base(W_BIAS_ROW), channels);
#else
  const vec4 bias = vec4(0.);
#endif
#define OUT(i) STORE(oY[i], padded(activate(total[i] + bias), n, group * ROWS + i));
  EACH_ROW(OUT)
}
