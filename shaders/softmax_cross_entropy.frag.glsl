// softmax_cross_entropy: the losses of rows and their gradient in one draw, for rows of a few texels
// Z [M,N] logits, T [M,N] probabilities or class numbers [M,1]  ->  DZ [M,N], L (row losses, written by the first column's fragment)
// loss = sum_n y_n (logsumexp(z) - z_n); DZ = (softmax(z) * sum(y) - y) / M; sums over N in blocks of 256, f32
// Padding lanes and rows are written as 0. Every column's fragment reads its whole row: longer rows take softmax_rows, softmax_grad.
// Reference: browser_runtime/reference/losses.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"
#include "lib/softmax.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  vec4 losses = vec4(0.);
  // Each turn puts its gradient behind the others: an array that a variable indexes would stay in memory.
  vec4 grad[ROWS];
#define CLEAR(i) grad[i] = vec4(0.);
  EACH_ROW(CLEAR)
  for (int i = 0; i < ROWS; i++) {
    int row = group * ROWS + i;
    vec4 dz = vec4(0.);
    if (row < uRows) {
      Statistics s = rowStatistics(row);
      losses = withLane(losses, i, n == 0 ? s.loss * rowShare(row) : 0.);
      dz = rowGrad(row, n, s.top, s.rest, s.weight) * rowShare(row);
    }
#if GRAD_ACTIVATION != LINEAR
    dz = activationGrad(dz, Z_fetch(Z_layer(row), Z_base(row), n));
#endif
#define TURN(i) grad[i] = grad[min(i + 1, ROWS - 1)];
    EACH_ROW(TURN)
    grad[ROWS - 1] = padded(dz, n, row);
  }
#define OUT(i) STORE(oDZ[i], grad[i]);
  EACH_ROW(OUT)
  STORE(oL[0], losses);
}
