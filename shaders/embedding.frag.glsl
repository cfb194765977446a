// embedding: Y[m, l] = W[X[m, l]]: rows of a table by their numbers     backward: embedding_grad_weights
// X [M,L] whole numbers from 0 to V - 1  W [V,U]  ->  Y [M,L,U]   ROWS samples and 4 units of a place a fragment
// Exact. A number that no row has gives NaN: nothing else would show that it was read.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/embedding.js
#include "lib/epilogue.glsl"
#include "lib/math.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int l = n / TEXELS_PER_PIXEL, units = channelTexel(n);
#define OUT(i) { \
    int row = group * ROWS + i; \
    float id = X_fetch(X_layer(row), X_base(row), l >> 2)[l & 3]; \
    bool known = id >= 0. && id < float(VOCABULARY) && floor(id) == id; \
    int entry = known ? int(id) : 0; \
    vec4 y = W_fetch(W_layer(entry), W_base(entry), units); \
    STORE(oY[i], padded(known ? y : vec4(tg_nan()), n, row)); }
  EACH_ROW(OUT)
}
