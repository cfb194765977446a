// gated_grad_input: DX = (DZ @ W^T) * act'(X), where DZ = (DY @ V^T) * G is stored as gates and factors     forward: affine, see gates
// G, F [M/8,N/4+2]  W [K,N]  Y [M,K] (the activation that X was)  ->  DX [M,K]   8 rows and 4 columns a fragment
// Adds V W^T where gates are open, over N in blocks of 256, f32, then multiplies by DY; error <= ~ (258 + N/256) * 2^-24 * sum|dz||w|
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/dense.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"
#include "lib/gates.glsl"

// w0 to w3: of 4 columns n of DZ, the weights of the fragment's 4 columns k.
#define ADD(i) \
  WHERE_OPEN(gates, i, 0, part[i], w[0]) \
  WHERE_OPEN(gates, i, 1, part[i], w[1]) \
  WHERE_OPEN(gates, i, 2, part[i], w[2]) \
  WHERE_OPEN(gates, i, 3, part[i], w[3])
// TEXELS of the gates' columns are taken at once: a GPU then waits for all their fetches together.
#define MULTIPLY(j) { \
  int column = n + j; \
  uint gates = gatesAt(group, column); \
  vec4 v = columnFactors(column); \
  mat4 w = transpose(mat4( \
    W_fetch(wLayer.x, wBase.x, column) * v, W_fetch(wLayer.y, wBase.y, column) * v, \
    W_fetch(wLayer.z, wBase.z, column) * v, W_fetch(wLayer.w, wBase.w, column) * v)); \
  EACH_ROW(ADD) }

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, k = place.y;
  vec4 total[ROWS];
#define CLEAR_TOTAL(i) total[i] = vec4(0.);
  EACH_ROW(CLEAR_TOTAL)
  ivec4 wLayer = ivec4(W_layer(4 * k), W_layer(4 * k + 1), W_layer(4 * k + 2), W_layer(4 * k + 3));
  ivec4 wBase = ivec4(W_base(4 * k), W_base(4 * k + 1), W_base(4 * k + 2), W_base(4 * k + 3));

  for (int start = 0; start < DZ_TEXELS_PER_ROW; start += BLOCK) {
    vec4 part[ROWS];
#define CLEAR(i) part[i] = vec4(0.);
    EACH_ROW(CLEAR)
    int end = min(start + BLOCK, DZ_TEXELS_PER_ROW);
    for (int n = start; n < end; n += TEXELS) { EACH_TEXEL(MULTIPLY) }
#define FLUSH(i) total[i] += part[i];
    EACH_ROW(FLUSH)
  }

  vec4 first = rowFactors(group, 0), second = rowFactors(group, 1);
#define DX(i) (total[i] * (i < 4 ? first : second)[i & 3])
#if GRAD_ACTIVATION == LINEAR
#define OUT(i) STORE(oDX[i], padded(DX(i), k, group * ROWS + i));
#else
#define OUT(i) { \
    int row = group * ROWS + i; \
    Y_Row y = Y_row(row); \
    Y_Column column = Y_column(k); \
    STORE(oDX[i], padded(activationGrad(DX(i), Y_at(y, column)), k, row)); }
#endif
  EACH_ROW(OUT)
}
