// affine_grad_input: DX = (DY @ W^T) * act'(Y)     forward: affine
// DY [M,N]  W [K,N]  Y [M,K] (the activation that X was)  ->  DX [M,K]   ROWS rows and 4 columns a fragment; DY may be a uniform block
// Accumulates over N in blocks of 256, from a uniform block up to 1,024 as one block of sums of four, f32; error <= ~ (256 + N/256) * 2^-24 * sum|dy||w|
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/dense.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"

#ifdef UNIFORM_COLUMNS
#define WEIGHTS(j) mat4( \
  W_fetch(wLayer.x, wBase.x, first + j), W_fetch(wLayer.y, wBase.y, first + j), W_fetch(wLayer.z, wBase.z, first + j), W_fetch(wLayer.w, wBase.w, first + j))
#define ADD_PRODUCT(sum, x, w) sum += vec4(dot(x, w[0]), dot(x, w[1]), dot(x, w[2]), dot(x, w[3]));
#include "lib/uniform_rows.glsl"
#define LOCATE(i) total[i] = vec4(0.);
#elif ROWS == 1
// As in affine: all fetches first.
#define LOAD(j) { \
  d[j] = DY_fetch(layer[0], base[0], n + j); \
  w0[j] = W_fetch(wLayer.x, wBase.x, n + j); w1[j] = W_fetch(wLayer.y, wBase.y, n + j); \
  w2[j] = W_fetch(wLayer.z, wBase.z, n + j); w3[j] = W_fetch(wLayer.w, wBase.w, n + j); }
#define MULTIPLY(j) part[0] += vec4(dot(d[j], w0[j]), dot(d[j], w1[j]), dot(d[j], w2[j]), dot(d[j], w3[j]));
#define ADD_PRODUCTS(n) vec4 d[TEXELS], w0[TEXELS], w1[TEXELS], w2[TEXELS], w3[TEXELS]; EACH_TEXEL(LOAD) EACH_TEXEL(MULTIPLY)
#else
// TEXELS of DY's rows are taken at once: a GPU then waits for all their fetches together.
#define ADD(i) { vec4 d = DY_fetch(layer[i], base[i], column); part[i] += vec4(dot(d, w0), dot(d, w1), dot(d, w2), dot(d, w3)); }
#define MULTIPLY(j) { \
  int column = n + j; \
  vec4 w0 = W_fetch(wLayer.x, wBase.x, column); \
  vec4 w1 = W_fetch(wLayer.y, wBase.y, column); \
  vec4 w2 = W_fetch(wLayer.z, wBase.z, column); \
  vec4 w3 = W_fetch(wLayer.w, wBase.w, column); \
  EACH_ROW(ADD) }
#define ADD_PRODUCTS(n) EACH_TEXEL(MULTIPLY)
#endif
#ifndef UNIFORM_COLUMNS
#define LOCATE(i) total[i] = vec4(0.); layer[i] = DY_layer(group * ROWS + i); base[i] = DY_base(group * ROWS + i);
#endif

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, k = place.y;
  vec4 total[ROWS];
#ifndef UNIFORM_COLUMNS
  int layer[ROWS];
  int base[ROWS];
#endif
  EACH_ROW(LOCATE)
  ivec4 wLayer = ivec4(W_layer(4 * k), W_layer(4 * k + 1), W_layer(4 * k + 2), W_layer(4 * k + 3));
  ivec4 wBase = ivec4(W_base(4 * k), W_base(4 * k + 1), W_base(4 * k + 2), W_base(4 * k + 3));

  for (int start = 0; start < DY_TEXELS_PER_ROW; start += BLOCK) {
    vec4 part[ROWS];
#define CLEAR(i) part[i] = vec4(0.);
    EACH_ROW(CLEAR)
    int end = min(start + BLOCK, DY_TEXELS_PER_ROW);
    for (int n = start; n < end; n += TEXELS) { ADD_PRODUCTS(n) }
#define FLUSH(i) total[i] += part[i];
    EACH_ROW(FLUSH)
  }

#if GRAD_ACTIVATION == LINEAR
#define OUT(i) STORE(oDX[i], padded(total[i], k, group * ROWS + i));
#else
#define OUT(i) { \
    int row = group * ROWS + i; \
    Y_Row y = Y_row(row); \
    Y_Column column = Y_column(k); \
    STORE(oDX[i], padded(activationGrad(total[i], Y_at(y, column)), k, row)); }
#endif
  EACH_ROW(OUT)
}
