// im2col: P = what each window holds, tap by tap, as the channels of one pixel     then: conv2d, conv2d_grad_weights with one tap
// X [M,H,W,C]  ->  P [M,OH,OW,KH KW C]   ROWS samples and 4 values of a window a fragment
// Exact. A convolution with few channels leaves most lanes of its texels empty; here they are full.
// Where a window hangs over the edge it holds zeros; padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/conv2d.js
#include "lib/epilogue.glsl"
#include "lib/taps.glsl"

// The texel of X that value k of a window comes from, -1 outside; k past the last one may give any, for a padding lane.
int texelOf(ivec2 window, int k) {
  int tap = k / CHANNELS_READ;
  int y = readRow(window.x, tap / WINDOW.y), x = readColumn(window.y, tap % WINDOW.y);
  return y < 0 || x < 0 ? -1 : (y * READ.y + x) * X_TEXELS_PER_PIXEL + k % CHANNELS_READ / 4;
}

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int pixel = n / TEXELS_PER_PIXEL, k = 4 * channelTexel(n);
  ivec2 window = ivec2(pixel / MADE.y, pixel % MADE.y);
  ivec4 texel = ivec4(texelOf(window, k), texelOf(window, k + 1), texelOf(window, k + 2), texelOf(window, k + 3));
#if CHANNELS_READ == 1
#define VALUE(row, i) (texel[i] < 0 ? 0. : X_fetch(X_layer(row), X_base(row), texel[i]).x)
#else
  ivec4 lane = (ivec4(0, 1, 2, 3) + k) % CHANNELS_READ % 4;
#define VALUE(row, i) (texel[i] < 0 ? 0. : X_fetch(X_layer(row), X_base(row), texel[i])[lane[i]])
#endif
#define OUT(i) { \
    int row = group * ROWS + i; \
    STORE(oP[i], padded(vec4(VALUE(row, 0), VALUE(row, 1), VALUE(row, 2), VALUE(row, 3)), n, row)); }
  EACH_ROW(OUT)
}
