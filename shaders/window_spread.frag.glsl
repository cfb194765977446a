// window_spread: to each element the sum of what its windows hold, or with MEAN of its share of that; of a gradient times act'(G)     backward: window_sum
// Y [M,OH,OW,C]  G [M,H,W,C]  ->  X [M,H,W,C]   ROWS samples and 4 channels of a pixel a fragment
// Adds up at most ceil(KH/SH) * ceil(KW/SW) windows, f32.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/windows.js
#include "lib/epilogue.glsl"
#include "lib/slope.glsl"
#include "lib/window.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int here = n / TEXELS_PER_PIXEL;
  ivec2 pixel = ivec2(here / INPUT.y, here % INPUT.y);
  // The windows that the pixel stands in: the first one ends behind it, the last one begins at or before it.
  ivec2 first = max(pixel + PADDING - WINDOW + STRIDE, ivec2(0)) / STRIDE, last = min((pixel + PADDING) / STRIDE, OUTPUT - 1);
  vec4 total[ROWS];
#define CLEAR(i) total[i] = vec4(0.);
  EACH_ROW(CLEAR)
  for (int y = first.x; y <= last.x; y++) {
    for (int x = first.y; x <= last.y; x++) {
      int texel = (y * OUTPUT.y + x) * TEXELS_PER_PIXEL + channelTexel(n);
#ifdef MEAN
      ivec2 corner = ivec2(y, x) * STRIDE - PADDING;
      ivec2 size = min(corner + WINDOW, INPUT) - max(corner, ivec2(0));
#define SHARE / float(size.x * size.y)
#else
#define SHARE
#endif
#define ADD(i) total[i] += Y_fetch(Y_layer(group * ROWS + i), Y_base(group * ROWS + i), texel) SHARE;
      EACH_ROW(ADD)
    }
  }
#define OUT(i) STORE(oX[i], padded(SLOPED(total[i], n, group * ROWS + i), n, group * ROWS + i));
  EACH_ROW(OUT)
}
