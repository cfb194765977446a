// max_pool2d_grad: the gradient of each window goes to its winner, times act'(X) where X was an activation     forward: max_pool2d
// WINNER, Y and DY [M,OH,OW,C]  ->  DX [M,H,W,C]   ROWS samples and 4 channels of a pixel a fragment
// Adds the gradients of at most ceil(KH/SH) * ceil(KW/SW) windows.
// X itself is not read: where a pixel has won a window, X is that window's Y, and elsewhere the gradient is 0.
// Padding lanes and rows are 0 because DY's are.
// Reference: browser_runtime/reference/max_pool2d.js
#include "lib/activation.glsl"
#include "lib/window.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int here = n / TEXELS_PER_PIXEL;
  int channels = n - here * TEXELS_PER_PIXEL;
  // Behind the window's start: the last window that reaches the pixel, and the tap under which it does; earlier ones reach it STRIDE taps on.
  ivec2 offset = ivec2(here / INPUT.y, here % INPUT.y) + PADDING;
  ivec2 last = offset / STRIDE;
  ivec2 nearest = offset - last * STRIDE;
  vec4 grad[ROWS];
#define CLEAR(i) grad[i] = vec4(0.);
  EACH_ROW(CLEAR)
#if GRAD_ACTIVATION != LINEAR
  vec4 own[ROWS];
#define ANY(i) own[i] = vec4(0.);
  EACH_ROW(ANY)
#define RECALL(i) own[i] = mix(own[i], Y_fetch(Y_layer(group * ROWS + i), Y_base(group * ROWS + i), texel), won);
#else
#define RECALL(i)
#endif
  for (int ky = nearest.x, y = last.x; ky < WINDOW.x && y >= 0; ky += STRIDE.x, y--) {
    for (int kx = nearest.y, x = last.y; kx < WINDOW.y && x >= 0; kx += STRIDE.y, x--) {
      if (y >= OUTPUT.x || x >= OUTPUT.y) continue;
      int texel = (y * OUTPUT.y + x) * TEXELS_PER_PIXEL + channels;
      vec4 tap = vec4(ky * WINDOW.y + kx);
#define ADD(i) { \
      bvec4 won = equal(WINNER_fetch(WINNER_layer(group * ROWS + i), WINNER_base(group * ROWS + i), texel), tap); \
      grad[i] += mix(vec4(0.), DY_fetch(DY_layer(group * ROWS + i), DY_base(group * ROWS + i), texel), won); \
      RECALL(i) }
      EACH_ROW(ADD)
    }
  }
#if GRAD_ACTIVATION == LINEAR
#define OUT(i) STORE(oDX[i], grad[i]);
#else
#define OUT(i) STORE(oDX[i], activationGrad(grad[i], own[i]));
#endif
  EACH_ROW(OUT)
}
