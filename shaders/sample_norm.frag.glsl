// sample_norm: Y = act((X - mean) * inverse deviation * gamma + beta), by the statistics of each set     backward: sample_norm_grad_*
// X [M,H,W,C]  S [M,sets,2]  W [1,C] gamma and beta in its bias row  ->  Y [M,H,W,C]   ROWS samples and 4 channels of a pixel a fragment
// Element by element: 4 roundings, and the activation's.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/sample_norm.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"
#include "lib/sets.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int pixel = n / TEXELS_PER_PIXEL, channels = channelTexel(n);
  vec4 gamma = W_fetch(W_layer(0), W_base(0), channels), beta = W_fetch(W_layer(W_BIAS_ROW), W_base(W_BIAS_ROW), channels);
#define OUT(i) { \
    int row = group * ROWS + i; \
    vec4 mean, inverse; \
    OF_SETS(S_fetch, S_layer(row), S_base(row), pixel, channels, mean, inverse) \
    STORE(oY[i], padded(activate((X_fetch(X_layer(row), X_base(row), n) - mean) * inverse * gamma + beta), n, row)); }
  EACH_ROW(OUT)
}
