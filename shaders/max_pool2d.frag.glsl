// max_pool2d: the largest element of each window; padding never wins, NaN does     backward: max_pool2d_grad
// X [M,H,W,C]  ->  Y [M,OH,OW,C]   ROWS samples and 4 channels of a pixel a fragment
// Exact.
// Padding lanes and rows are 0 because X's are.
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
#define LOCATE(i) top[i] = X_fetch(X_layer(group * ROWS + i), X_base(group * ROWS + i), ((corner.x + low.x) * INPUT.y + corner.y + low.y) * TEXELS_PER_PIXEL + channels);
  EACH_ROW(LOCATE)
  for (int ky = low.x; ky < high.x; ky++) {
    for (int kx = low.y; kx < high.y; kx++) {
      int texel = ((corner.x + ky) * INPUT.y + corner.y + kx) * TEXELS_PER_PIXEL + channels;
#define COMPARE(i) { \
      vec4 v = X_fetch(X_layer(group * ROWS + i), X_base(group * ROWS + i), texel); \
      top[i] = mix(top[i], v, wins(v, top[i])); }
      EACH_ROW(COMPARE)
    }
  }
#define OUT(i) STORE(oY[i], top[i]);
  EACH_ROW(OUT)
}
