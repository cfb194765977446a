// softmax_grad: the gradient of softmax cross-entropy from the statistics of its rows     after: softmax_rows
// Z [M,N], T [M,N] or [M,1], S [M,4] of softmax_rows  ->  DZ [M,N]   ROWS rows and 4 columns a fragment
// DZ = (softmax(z) * sum(y) - y) / M; element by element
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/losses.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"
#include "lib/softmax.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  // Each turn puts its gradient behind the others: an array that a variable indexes would stay in memory.
  vec4 grad[ROWS];
#define CLEAR(i) grad[i] = vec4(0.);
  EACH_ROW(CLEAR)
  for (int i = 0; i < ROWS; i++) {
    int row = group * ROWS + i;
    vec4 s = S_fetch(S_layer(row), S_base(row), 0);
    vec4 dz = rowGrad(row, n, s.x, s.y, s.z) * rowShare(row);
#if GRAD_ACTIVATION != LINEAR
    dz = activationGrad(dz, Z_fetch(Z_layer(row), Z_base(row), n));
#endif
#define TURN(i) grad[i] = grad[min(i + 1, ROWS - 1)];
    EACH_ROW(TURN)
    grad[ROWS - 1] = padded(dz, n, row);
  }
#define OUT(i) STORE(oDZ[i], grad[i]);
  EACH_ROW(OUT)
}
