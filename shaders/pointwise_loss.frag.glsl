// pointwise_loss: a loss that treats each output alone, of outputs that were stored, and its gradient     forward: any op that the loss can't ride with
// Z [M,N], T [M,N] or [M,1]  ->  DZ [M,N], L (parts of the row losses) and C (of the accuracy) [M,1], row i of ROWS in lane i
// Element by element, and the sum of 4 elements.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/losses.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"
#include "lib/loss.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  vec4 grad[ROWS];
  vec4 losses = vec4(0.), corrects = vec4(0.);
  // Each turn puts its gradient behind the others: an array that a variable indexes would stay in memory.
#define CLEAR(i) grad[i] = vec4(0.);
  EACH_ROW(CLEAR)
  for (int i = 0; i < ROWS; i++) {
    int row = group * ROWS + i;
    vec4 z = Z_fetch(Z_layer(row), Z_base(row), n);
    RowLoss r = rowLoss(z, T_fetch(T_layer(row), T_base(row), T_TEXELS_PER_ROW > 1 ? n : 0), n);
    bool inside = row < uRows;
    losses = withLane(losses, i, inside ? r.loss * rowShare(row) : 0.);
    corrects = withLane(corrects, i, inside ? r.correct : 0.);
#define TURN(i) grad[i] = grad[min(i + 1, ROWS - 1)];
    EACH_ROW(TURN)
    grad[ROWS - 1] = padded(activationGrad(r.grad * rowShare(row), z), n, row);
  }
#ifdef WITH_GRAD
#define OUT(i) STORE(oDZ[i], grad[i]);
  EACH_ROW(OUT)
#endif
  STORE(oL[0], losses);
#ifdef WITH_ACCURACY
  STORE(oC[0], corrects);
#endif
}
