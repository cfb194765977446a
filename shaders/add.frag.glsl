// add: Y = act(A + B), or of two gradients Y = (A + B) * act'(G)     backward: none, the gradient passes to both
// A [M,N]  B [M,N]  G [M,N] (an activation's output)  ->  Y [M,N]   ROWS rows and 4 columns a fragment
// One rounding, and the activation's.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/index.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
#if GRAD_ACTIVATION == LINEAR
#define SLOPED(sum, row) activate(sum)
#else
#define SLOPED(sum, row) activationGrad(sum, G_fetch(G_layer(row), G_base(row), n))
#endif
#define OUT(i) { \
    int row = group * ROWS + i; \
    vec4 sum = A_fetch(A_layer(row), A_base(row), n) + B_fetch(B_layer(row), B_base(row), n); \
    STORE(oY[i], padded(SLOPED(sum, row), n, row)); }
  EACH_ROW(OUT)
}
