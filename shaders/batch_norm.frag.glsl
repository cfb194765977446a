// batch_norm: Y = act((X - mean) / sqrt(variance + eps) * gamma + beta), by the statistics of each channel     backward: norm_grad_weights, batch_norm_grad_input
// X [M,H,W,C]  MEAN [C]  VARIANCE [C]  W [1,C] gamma and beta in its bias row  ->  Y [M,H,W,C]   ROWS samples and 4 channels of a pixel a fragment
// Element by element: 5 roundings, a square root and a division, and the activation's.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/batch_norm.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int c = channelTexel(n);
  vec4 mean = MEAN_fetch(0, MEAN_base(0), c), inverse = 1. / sqrt(VARIANCE_fetch(0, VARIANCE_base(0), c) + EPS);
  vec4 gamma = W_fetch(W_layer(0), W_base(0), c), beta = W_fetch(W_layer(W_BIAS_ROW), W_base(W_BIAS_ROW), c);
#define OUT(i) { \
    int row = group * ROWS + i; \
    STORE(oY[i], padded(activate((X_fetch(X_layer(row), X_base(row), n) - mean) * inverse * gamma + beta), n, row)); }
  EACH_ROW(OUT)
}
