// max_pool2d_grad: the gradient of each window goes to its first largest element, times act'(X) where X was an activation     forward: max_pool2d
// X [M,H,W,C], Y and DY [M,OH,OW,C]  ->  DX [M,H,W,C]   ROWS samples and 4 channels of a pixel a fragment
// Adds the gradients of at most ceil(KH/SH) * ceil(KW/SW) windows.
// Padding lanes and rows are 0 because DY's are.
// Reference: browser_runtime/reference/max_pool2d.js
#include "lib/activation.glsl"
#include "lib/max.glsl"
#include "lib/window.glsl"

// Whether an input pixel is its window's winner in each lane: it equals the maximum, and no earlier element of the window does.
bvec4 isFirst(int row, int channels, ivec2 corner, ivec2 tap, vec4 own, vec4 top) {
  bvec4 nanTop = tg_isnan(top), nanOwn = tg_isnan(own);
  bvec4 first = bvec4(nanTop.x ? nanOwn.x : own.x == top.x, nanTop.y ? nanOwn.y : own.y == top.y, nanTop.z ? nanOwn.z : own.z == top.z, nanTop.w ? nanOwn.w : own.w == top.w);
  for (int t = 0; t < tap.x * WINDOW.y + tap.y; t++) {
    ivec2 at = corner + ivec2(t / WINDOW.y, t % WINDOW.y);
    if (any(lessThan(at, ivec2(0))) || any(greaterThanEqual(at, INPUT))) continue;
    vec4 v = X_fetch(X_layer(row), X_base(row), (at.x * INPUT.y + at.y) * TEXELS_PER_PIXEL + channels);
    bvec4 nan = tg_isnan(v);
    first = bvec4(first.x && !(nanTop.x ? nan.x : v.x == top.x), first.y && !(nanTop.y ? nan.y : v.y == top.y),
                  first.z && !(nanTop.z ? nan.z : v.z == top.z), first.w && !(nanTop.w ? nan.w : v.w == top.w));
  }
  return first;
}

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int here = n / TEXELS_PER_PIXEL;
  int channels = n - here * TEXELS_PER_PIXEL;
  ivec2 pixel = ivec2(here / INPUT.y, here % INPUT.y);
  vec4 grad[ROWS];
  // A loop, so that the search is inlined once.
  for (int i = 0; i < ROWS; i++) {
    int row = group * ROWS + i;
    vec4 own = X_fetch(X_layer(row), X_base(row), n);
    vec4 sum = vec4(0.);
    for (int ky = 0; ky < WINDOW.x; ky++) {
      for (int kx = 0; kx < WINDOW.y; kx++) {
        ivec2 at = windowOf(pixel, ivec2(ky, kx));
        if (at.x < 0) continue;
        int texel = (at.x * OUTPUT.y + at.y) * TEXELS_PER_PIXEL + channels;
        vec4 top = Y_fetch(Y_layer(row), Y_base(row), texel);
        bvec4 first = isFirst(row, channels, at * STRIDE - PADDING, ivec2(ky, kx), own, top);
        sum += mix(vec4(0.), DY_fetch(DY_layer(row), DY_base(row), texel), first);
      }
    }
#if GRAD_ACTIVATION != LINEAR
    sum = activationGrad(sum, own);
#endif
    grad[i] = sum;
  }
#define OUT(i) STORE(oDX[i], grad[i]);
  EACH_ROW(OUT)
}
