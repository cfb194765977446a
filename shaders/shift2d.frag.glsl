// shift2d: Y = X moved by OFFSET lines, zeros where X has none: padding and cropping; of a gradient times act'(G)     backward: shift2d the other way
// X [M,H,W,C]  G [M,OH,OW,C]  ->  Y [M,OH,OW,C]   ROWS samples and 4 channels of a pixel a fragment
// Exact.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/move.js
#include "lib/epilogue.glsl"
#include "lib/slope.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int pixel = n / TEXELS_PER_PIXEL;
  ivec2 at = ivec2(pixel / OUTPUT.y, pixel % OUTPUT.y) + OFFSET;
  bool stands = all(greaterThanEqual(at, ivec2(0))) && all(lessThan(at, INPUT));
  int texel = stands ? (at.x * INPUT.y + at.y) * TEXELS_PER_PIXEL + channelTexel(n) : 0;
#define OUT(i) { \
    int row = group * ROWS + i; \
    vec4 y = stands ? X_fetch(X_layer(row), X_base(row), texel) : vec4(0.); \
    STORE(oY[i], padded(SLOPED(y, n, row), n, row)); }
  EACH_ROW(OUT)
}
