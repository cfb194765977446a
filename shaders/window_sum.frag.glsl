// window_sum: the sum of each window, or with MEAN its mean, padding not counted; of a gradient times act'(G)     backward: window_spread
// X [M,H,W,C]  G [M,OH,OW,C]  ->  Y [M,OH,OW,C]   ROWS samples and 4 channels of a pixel a fragment
// Accumulates over the elements of a window's row, then over its rows, f32; error <= ~ (KW + KH + 3) * 2^-24 * sum|x|, over their number for a mean
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/windows.js
#include "lib/epilogue.glsl"
#include "lib/slope.glsl"
#include "lib/window.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  ivec2 corner = windowCorner(n / TEXELS_PER_PIXEL);
  ivec2 low = max(corner, ivec2(0)), high = min(corner + WINDOW, INPUT);
  vec4 total[ROWS];
#define CLEAR(i) total[i] = vec4(0.);
  EACH_ROW(CLEAR)
  for (int y = low.x; y < high.x; y++) {
    vec4 part[ROWS];
#define CLEAR_PART(i) part[i] = vec4(0.);
    EACH_ROW(CLEAR_PART)
    for (int x = low.y; x < high.y; x++) {
      int texel = (y * INPUT.y + x) * TEXELS_PER_PIXEL + channelTexel(n);
#define ADD(i) part[i] += X_fetch(X_layer(group * ROWS + i), X_base(group * ROWS + i), texel);
      EACH_ROW(ADD)
    }
#define FLUSH(i) total[i] += part[i];
    EACH_ROW(FLUSH)
  }
#ifdef MEAN
#define SCALED(i) (total[i] / float((high.x - low.x) * (high.y - low.y)))
#else
#define SCALED(i) total[i]
#endif
#define OUT(i) STORE(oY[i], padded(SLOPED(SCALED(i), n, group * ROWS + i), n, group * ROWS + i));
  EACH_ROW(OUT)
}
