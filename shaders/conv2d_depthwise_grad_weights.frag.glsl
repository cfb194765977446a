// conv2d_depthwise_grad_weights: conv2d_grad_weights where every channel is a group of its own with one filter     forward: conv2d_depthwise; then: update
// X [M,H,W,C]  DY [M,OH,OW,C]  ->  DW [SPLITS,KH,KW,1,C], db in its bias row   a tap and 4 channels a fragment; its other rows are padding
// Lanes multiply lanes. SPLITS fragments share the lines; update adds their parts.
// Accumulates a line of 4 samples at a time, f32; error <= ~ (4 OW + M OH / (4 SPLITS) + SPLITS) * 2^-24 * sum|x||dy|
// Padding is written as 0. Requires ROWS <= 4: then a fragment's rows are of one tap.
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
  int tap = isBias ? 0 : group * ROWS / 4;
  ivec2 offset = ivec2(tap / WINDOW.y, tap % WINDOW.y) * DILATION - PADDING;
  vec4 total = vec4(0.);

  int lines = (uRows + 3) / 4 * OUTPUT.x;
  ivec2 share = shareOf(lines, split);
  int first = share.x, last = share.y;
  // A tap has one row; the 3 that pad it are whole fragments where ROWS is below 4.
  if (!isBias && group * ROWS % 4 != 0) last = first;
  for (int line = first; line < last; line++) {
    int m = line / OUTPUT.x * 4;
    int window = line % OUTPUT.x;
    int y = window * STRIDE.x + offset.x;
    if (!isBias && (y < 0 || y >= INPUT.x)) continue;
    vec4 part = vec4(0.);
    ivec4 dLayer = ivec4(DY_layer(m), DY_layer(m + 1), DY_layer(m + 2), DY_layer(m + 3));
    ivec4 dBase = ivec4(DY_base(m), DY_base(m + 1), DY_base(m + 2), DY_base(m + 3));
    ivec4 xLayer = ivec4(X_layer(m), X_layer(m + 1), X_layer(m + 2), X_layer(m + 3));
    ivec4 xBase = ivec4(X_base(m), X_base(m + 1), X_base(m + 2), X_base(m + 3));
    for (int column = 0; column < OUTPUT.y; column++) {
      int x = column * STRIDE.y + offset.y;
      if (!isBias && (x < 0 || x >= INPUT.y)) continue;
      int xTexel = (y * INPUT.y + x) * TEXELS_PER_ROW + f;
      int dTexel = (window * OUTPUT.y + column) * TEXELS_PER_ROW + f;
#define SAMPLE(q) part += DY_fetch(dLayer.q, dBase.q, dTexel) * (isBias ? vec4(1.) : X_fetch(xLayer.q, xBase.q, xTexel));
      SAMPLE(x) SAMPLE(y) SAMPLE(z) SAMPLE(w)
    }
    total += part;
  }
#define OUT(i) STORE(oDW[i], paddedWeight(total, f, group * ROWS + i));
  EACH_ROW(OUT)
}
