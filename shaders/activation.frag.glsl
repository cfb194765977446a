// activation: Y = act(X)     backward: activation_grad
// X [M,N]  ->  Y [M,N]   ROWS rows and 4 columns a fragment
// Element by element: within 4 ULP, gelu within 2^-21 |x| (docs/numerics.md).
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/activations.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
#define OUT(i) { \
    int row = group * ROWS + i; \
    STORE(oY[i], padded(activate(X_fetch(X_layer(row), X_base(row), n)), n, row)); }
  EACH_ROW(OUT)
}
