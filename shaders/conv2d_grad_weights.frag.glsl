// conv2d_grad_weights: DW = sum over samples and pixels of X under the tap times DY, db = sums of DY     forward: conv2d; then: update
// X [M,H,W,C]  DY [M,OH,OW,F]  ->  DW [SPLITS,KH,KW,C/G,F], db in its bias row   ROWS weight rows and 4 filters a fragment
// The reduction is long and the outputs few, so SPLITS fragments share it, each for some image lines; update adds their parts.
// A filter sums its group: READ_TEXELS of X and MADE_TEXELS of Y each. TRANSPOSED is that of conv2d_transpose: see lib/taps.glsl.
// Accumulates a line of 4 samples at a time, f32; error <= ~ (4 OW + M OH / (4 SPLITS) + SPLITS) * 2^-24 * sum|x||dy|
// Padding is written as 0. Requires ROWS <= 4: then a fragment's rows meet lanes of one texel of X. And G = 1, or groups that
// fill their texels; else conv2d_grouped_grad_weights.
// Reference: browser_runtime/reference/conv2d.js
#include "lib/epilogue.glsl"
#include "lib/share.glsl"
#include "lib/taps.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int split = place.x / WEIGHT_GROUPS;
  int group = place.x - split * WEIGHT_GROUPS;
  int f = place.y;
  bool isBias = group == BIAS_GROUP;
  int row4 = isBias ? 0 : group * ROWS / 4;
  int lane = group * ROWS % 4;
  int tap = row4 / READ_TEXELS;
  int c = row4 - tap * READ_TEXELS + f / MADE_TEXELS * READ_TEXELS;
  // The bias sums all that was made, a tap what it joins: a pixel for each window.
  ivec2 grid = isBias ? MADE : OUTPUT;
  ivec2 offset = ivec2(tap / WINDOW.y, tap % WINDOW.y) * DILATION - PADDING;
  vec4 total[ROWS];
#define CLEAR_TOTAL(i) total[i] = vec4(0.);
  EACH_ROW(CLEAR_TOTAL)

  int lines = (uRows + 3) / 4 * grid.x;
  ivec2 share = shareOf(lines, split);
  int first = share.x, last = share.y;
  for (int line = first; line < last; line++) {
    int m = line / grid.x * 4;
    int window = line % grid.x;
    int y = window * STRIDE.x + offset.x;
    if (!isBias && (y < 0 || y >= INPUT.x)) continue;
    vec4 part[ROWS];
#define CLEAR(i) part[i] = vec4(0.);
    EACH_ROW(CLEAR)
    ivec4 dLayer = ivec4(DY_layer(m), DY_layer(m + 1), DY_layer(m + 2), DY_layer(m + 3));
    ivec4 dBase = ivec4(DY_base(m), DY_base(m + 1), DY_base(m + 2), DY_base(m + 3));
    ivec4 xLayer = ivec4(X_layer(m), X_layer(m + 1), X_layer(m + 2), X_layer(m + 3));
    ivec4 xBase = ivec4(X_base(m), X_base(m + 1), X_base(m + 2), X_base(m + 3));
    for (int column = 0; column < grid.y; column++) {
      int x = column * STRIDE.y + offset.y;
      if (!isBias && (x < 0 || x >= INPUT.y)) continue;
      int here = window * grid.y + column, under = y * INPUT.y + x;
#ifdef TRANSPOSED
      int xTexel = here * X_TEXELS_PER_PIXEL + c;
      int dTexel = (isBias ? here : under) * TEXELS_PER_ROW + f;
#else
      int xTexel = under * X_TEXELS_PER_PIXEL + c;
      int dTexel = here * TEXELS_PER_ROW + f;
#endif
      vec4 d, v;
#if ROWS == 4
#define MULTIPLY(i) part[i] += v[i] * d;
#else
#define MULTIPLY(i) part[i] += v[lane + i] * d;
#endif
#define SAMPLE(q) \
      d = DY_fetch(dLayer.q, dBase.q, dTexel); \
      v = isBias ? vec4(1., 0., 0., 0.) : X_fetch(xLayer.q, xBase.q, xTexel); \
      EACH_ROW(MULTIPLY)
      SAMPLE(x) SAMPLE(y) SAMPLE(z) SAMPLE(w)
    }
#define FLUSH(i) total[i] += part[i];
    EACH_ROW(FLUSH)
  }
#define OUT(i) STORE(oDW[i], paddedWeight(total[i], f, group * ROWS + i));
  EACH_ROW(OUT)
}
