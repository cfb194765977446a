// activation_grad: DX = DY * act'(X), as a function of Y = act(X)     forward: an epilogue of the op before it
// DY [M,N]  Y [M,N]  ->  DX [M,N]   ROWS rows and 4 columns a fragment
// Element by element: a few roundings.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/activations.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
#define OUT(i) { \
    int row = group * ROWS + i; \
    vec4 y = Y_fetch(Y_layer(row), Y_base(row), n); \
    STORE(oDX[i], padded(activationGrad(DY_fetch(DY_layer(row), DY_base(row), n), y), n, row)); }
  EACH_ROW(OUT)
}
