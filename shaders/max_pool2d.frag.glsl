// max_pool2d: the largest element of each window, the first where several are; padding never wins, NaN does     backward: max_pool2d_grad
// X [M,H,W,C]  ->  Y [M,OH,OW,C]   ROWS samples and 4 channels of a pixel a fragment; WINNER: Y is which tap it is, counted row by row
// Exact.
// Padding lanes and rows of the largest element are 0 because X's are; those of the tap are any tap's.
// Reference: browser_runtime/reference/max_pool2d.js
#include "lib/max.glsl"
#include "lib/window.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int pixel = n / TEXELS_PER_PIXEL;
  int channels = n - pixel * TEXELS_PER_PIXEL;
  ivec2 corner = windowCorner(pixel);
  ivec2 low = max(-corner, ivec2(0)), high = min(WINDOW, INPUT - corner);
  vec4 top[ROWS];
#ifdef WINNER
  vec4 winner[ROWS];
#define START(i) winner[i] = vec4(low.x * WINDOW.y + low.y);
  EACH_ROW(START)
#define MARK(i) winner[i] = mix(winner[i], vec4(ky * WINDOW.y + kx), won);
#else
#define MARK(i)
#endif
#define LOCATE(i) top[i] = X_fetch(X_layer(group * ROWS + i), X_base(group * ROWS + i), ((corner.x + low.x) * INPUT.y + corner.y + low.y) * TEXELS_PER_PIXEL + channels);
  EACH_ROW(LOCATE)
  for (int ky = low.x; ky < high.x; ky++) {
    for (int kx = low.y; kx < high.y; kx++) {
      int texel = ((corner.x + ky) * INPUT.y + corner.y + kx) * TEXELS_PER_PIXEL + channels;
#define COMPARE(i) { \
      vec4 v = X_fetch(X_layer(group * ROWS + i), X_base(group * ROWS + i), texel); \
      bvec4 won = wins(v, top[i]); \
      top[i] = mix(top[i], v, won); \
      MARK(i) }
      EACH_ROW(COMPARE)
    }
  }
#ifdef WINNER
#define OUT(i) STORE(oY[i], winner[i]);
#else
#define OUT(i) STORE(oY[i], top[i]);
#endif
  EACH_ROW(OUT)
}
