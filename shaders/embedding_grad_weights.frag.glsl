// embedding_grad_weights: DW[v] = sum of DY[m, l] where X[m, l] = v     forward: embedding; then: update
// X [M,L]  DY [M,L,U]  ->  DW [SPLITS,V,U]   ROWS rows of the table and 4 units a fragment
// A fragment can't add to what another writes, so each looks through the numbers for its own rows instead of scattering.
// SPLITS fragments share the lines, each 4 places of 4 samples; update adds their parts.
// Accumulates a line at a time, f32; error <= ~ (16 + M L / (16 SPLITS) + SPLITS) * 2^-24 * sum|dy|
// Padding is written as 0.
// Reference: browser_runtime/reference/embedding.js
#include "lib/epilogue.glsl"
#include "lib/share.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int split = place.x / WEIGHT_GROUPS;
  int group = place.x - split * WEIGHT_GROUPS;
  int units = place.y;
  vec4 total[ROWS];
#define CLEAR_TOTAL(i) total[i] = vec4(0.);
  EACH_ROW(CLEAR_TOTAL)

  int lines = (uRows + 3) / 4 * X_TEXELS_PER_ROW;
  ivec2 share = shareOf(lines, split);
  int first = share.x, last = share.y;
  for (int line = first; line < last; line++) {
    int m = line / X_TEXELS_PER_ROW * 4;
    int texel = line % X_TEXELS_PER_ROW;
    vec4 part[ROWS];
#define CLEAR(i) part[i] = vec4(0.);
    EACH_ROW(CLEAR)
    // Lanes past the last place hold 0, which is a number like others. Samples past the last have gradients of 0.
#define ADD(i) part[i] += entry == float(i) ? d : vec4(0.);
#define PLACE(q, j) { \
      float entry = ids[j] - float(group * ROWS); \
      if (entry >= 0. && entry < float(ROWS) && 4 * texel + j < X_COLUMNS) { \
        vec4 d = DY_fetch(DY_layer(m + q), DY_base(m + q), (4 * texel + j) * TEXELS_PER_ROW + units); \
        EACH_ROW(ADD) \
      } }
#define SAMPLE(q) { \
      vec4 ids = X_fetch(X_layer(m + q), X_base(m + q), texel); \
      PLACE(q, 0) PLACE(q, 1) PLACE(q, 2) PLACE(q, 3) }
    SAMPLE(0) SAMPLE(1) SAMPLE(2) SAMPLE(3)
#define FLUSH(i) total[i] += part[i];
    EACH_ROW(FLUSH)
  }
#define OUT(i) STORE(oDW[i], paddedWeight(total[i], units, group * ROWS + i));
  EACH_ROW(OUT)
}
