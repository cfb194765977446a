// slice_channels: C channels of X from FIRST on, pixel by pixel; of a gradient times act'(G)     forward: concat
// X [M,P,N]  G [M,P,C]  ->  Y [M,P,C]   ROWS samples and 4 channels of a pixel a fragment
// Exact.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/move.js
#include "lib/epilogue.glsl"
#include "lib/lanes.glsl"
#include "lib/slope.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int pixel = n / TEXELS_PER_PIXEL, first = (4 * channelTexel(n) + FIRST) / 4;
  ivec2 x = pixel * X_TEXELS_PER_PIXEL + min(ivec2(first, first + 1), ivec2(X_TEXELS_PER_PIXEL - 1));
#define OUT(i) { \
    int row = group * ROWS + i, layer = X_layer(row), base = X_base(row); \
    vec4 y = across(X_fetch(layer, base, x.x), X_fetch(layer, base, x.y)); \
    STORE(oY[i], padded(SLOPED(y, n, row), n, row)); }
  EACH_ROW(OUT)
}
