// softmax_channels_grad: DX = Y (DY - sum over the pixel's channels of DY Y)     forward: softmax_channels
// DY [M,N]  Y [M,N]  ->  DX [M,N]   ROWS rows and 4 channels of a pixel a fragment, which looks through the pixel's channels
// Sums over the channels in blocks of 256, f32; error <= ~ y (2^-23 |dy| + (64 + C/256 + 8) * 2^-24 sum|dy y|)
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/softmax_channels.js
#include "lib/epilogue.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int first = n - channelTexel(n);
#define OUT(i) { \
    int row = group * ROWS + i, dyLayer = DY_layer(row), dyBase = DY_base(row), yLayer = Y_layer(row), yBase = Y_base(row); \
    float total = 0.; \
    for (int start = 0; start < TEXELS_PER_PIXEL; start += BLOCK) { \
      float part = 0.; \
      int end = min(start + BLOCK, TEXELS_PER_PIXEL); \
      for (int k = start; k < end; k++) part += dot(DY_fetch(dyLayer, dyBase, first + k), Y_fetch(yLayer, yBase, first + k)); \
      total += part; \
    } \
    vec4 dx = Y_fetch(yLayer, yBase, n) * (DY_fetch(dyLayer, dyBase, n) - total); \
    STORE(oDX[i], padded(dx, n, row)); }
  EACH_ROW(OUT)
}
