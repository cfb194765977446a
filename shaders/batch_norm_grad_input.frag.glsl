// batch_norm_grad_input: DX = gamma / sqrt(variance + eps) * (DY - mean of DY - x' * mean of DY x') * act'(Y), x' the normalized X     forward: batch_norm
// X [M,H,W,C]  MEAN [C]  VARIANCE [C]  DY [M,H,W,C]  W [1,C]  DW [1,C] whose rows are the sums  Y [M,H,W,C] (the activation that X was)  ->  DX [M,H,W,C]
// With FROZEN, statistics are given numbers: DX = gamma / sqrt(variance + eps) * DY * act'(Y).
// ROWS samples and 4 channels of a pixel a fragment; element by element: some 10 roundings, relative to the largest of the three terms.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/batch_norm.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int c = channelTexel(n);
  vec4 inverse = 1. / sqrt(VARIANCE_fetch(0, VARIANCE_base(0), c) + EPS);
  vec4 scale = W_fetch(W_layer(0), W_base(0), c) * inverse;
#ifdef FROZEN
#define CENTRED(row) DY_fetch(DY_layer(row), DY_base(row), n)
#else
  float share = 1. / float(max(uRows * PIXELS, 1)); // of this batch, whatever the step's other batches have
  vec4 mean = MEAN_fetch(0, MEAN_base(0), c);
  vec4 first = DW_fetch(DW_layer(DW_BIAS_ROW), DW_base(DW_BIAS_ROW), c) * share, second = DW_fetch(DW_layer(0), DW_base(0), c) * share;
#define CENTRED(row) DY_fetch(DY_layer(row), DY_base(row), n) - first - (X_fetch(X_layer(row), X_base(row), n) - mean) * inverse * second
#endif
#if GRAD_ACTIVATION == LINEAR
#define SLOPED(gradient, row) gradient
#else
#define SLOPED(gradient, row) activationGrad(gradient, Y_fetch(Y_layer(row), Y_base(row), n))
#endif
#define OUT(i) { \
    int row = group * ROWS + i; \
    vec4 dx = scale * (CENTRED(row)); \
    STORE(oDX[i], padded(SLOPED(dx, row), n, row)); }
  EACH_ROW(OUT)
}
