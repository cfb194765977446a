// conv2d_depthwise_grad_input: conv2d_grad_input where every channel is a group of its own with one filter     forward: conv2d_depthwise
// DY [M,OH,OW,C]  W [KH,KW,1,C]  Y [M,H,W,C] (the activation that X was)  ->  DX [M,H,W,C]   ROWS samples and 4 channels of a pixel a fragment
// Lanes multiply lanes.
// Accumulates over the taps of a kernel row, then over kernel rows, f32; error <= ~ (KW + KH) * 2^-24 * sum|dy||w|
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/conv2d.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"
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

  for (int ky = 0; ky < WINDOW.x; ky++) {
    int y = madeRow(read.x, ky);
    if (y < 0) continue;
    vec4 part[ROWS];
#define CLEAR(i) part[i] = vec4(0.);
    EACH_ROW(CLEAR)
    for (int kx = 0; kx < WINDOW.y; kx++) {
      int x = madeColumn(read.y, kx);
      if (x < 0) continue;
      int texel = (y * MADE.y + x) * TEXELS_PER_PIXEL + channels;
      int tap = 4 * (ky * WINDOW.y + kx);
      vec4 w = W_fetch(W_layer(tap), W_base(tap), channels);
#define ADD(i) part[i] += DY_fetch(layer[i], base[i], texel) * w;
      EACH_ROW(ADD)
    }
#define FLUSH(i) total[i] += part[i];
    EACH_ROW(FLUSH)
  }

#if GRAD_ACTIVATION == LINEAR
#define OUT(i) STORE(oDX[i], padded(total[i], n, group * ROWS + i));
#else
#define OUT(i) { \
    int row = group * ROWS + i; \
    STORE(oDX[i], padded(activationGrad(total[i], Y_fetch(Y_layer(row), Y_base(row), n)), n, row)); }
#endif
  EACH_ROW(OUT)
}
