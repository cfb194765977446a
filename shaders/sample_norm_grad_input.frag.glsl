// sample_norm_grad_input: DX = inverse deviation * (DY gamma - mean of it - x' * mean of DY gamma x') * act'(Y), x' the normalized X     forward: sample_norm
// X [M,H,W,C]  S [M,sets,2]  SUMS [M,sets,2]  DY [M,H,W,C]  W [1,C]  Y [M,H,W,C] (the activation that X was)  ->  DX [M,H,W,C]
// ROWS samples and 4 channels of a pixel a fragment; element by element: 7 roundings, relative to the largest of the three terms.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/sample_norm.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"
#include "lib/sets.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int pixel = n / TEXELS_PER_PIXEL, channels = channelTexel(n);
  vec4 gamma = W_fetch(W_layer(0), W_base(0), channels);
#if GRAD_ACTIVATION == LINEAR
#define SLOPED(gradient, row) gradient
#else
#define SLOPED(gradient, row) activationGrad(gradient, Y_fetch(Y_layer(row), Y_base(row), n))
#endif
#define OUT(i) { \
    int row = group * ROWS + i; \
    vec4 mean, inverse, first, second; \
    OF_SETS(S_fetch, S_layer(row), S_base(row), pixel, channels, mean, inverse) \
    OF_SETS(SUMS_fetch, SUMS_layer(row), SUMS_base(row), pixel, channels, first, second) \
    vec4 x = (X_fetch(X_layer(row), X_base(row), n) - mean) * inverse; \
    vec4 dx = inverse * (DY_fetch(DY_layer(row), DY_base(row), n) * gamma - first - x * second); \
    STORE(oDX[i], padded(SLOPED(dx, row), n, row)); }
  EACH_ROW(OUT)
}
