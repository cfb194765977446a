// add: Y = act(A + B), or of two gradients Y = (A + B) act'(G)     backward: none, the gradient passes to both
// A [M,N]  B [M,N]  G [M,N] (an activation's output, or its input)  ->  Y [M,N]   ROWS rows and 4 columns a fragment
// One rounding, and the activation's.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/index.js
#include "lib/epilogue.glsl"
#include "lib/slope.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
#define OUT(i) { \
    int row = group * ROWS + i; \
    vec4 y = A_fetch(A_layer(row), A_base(row), n) + B_fetch(B_layer(row), B_base(row), n); \
    STORE(oY[i], padded(SLOPED(activate(y), n, row), n, row)); }
  EACH_ROW(OUT)
}
