// conv2d_grouped_grad_weights: conv2d_grad_weights for groups of any number of channels     forward: conv2d_grouped; then: update
// X [M,H,W,C]  DY [M,OH,OW,F]  ->  DW [SPLITS,KH,KW,C/G,F], db in its bias row   ROWS weight rows and 4 filters a fragment
// The filters of a texel may be of several groups, so each takes its own channel. SPLITS fragments share the lines; update adds their parts.
// Accumulates a line of 4 samples at a time, f32; error <= ~ (4 OW + M OH / (4 SPLITS) + SPLITS) * 2^-24 * sum|x||dy|
// Padding is written as 0. Requires ROWS <= 4: then a fragment's rows are of one tap.
// Reference: browser_runtime/reference/conv2d.js
#include "lib/epilogue.glsl"
#include "lib/groups.glsl"
#include "lib/share.glsl"
#include "lib/taps.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int split = place.x / WEIGHT_GROUPS;
  int group = place.x - split * WEIGHT_GROUPS;
  int f = place.y;
  bool isBias = group == BIAS_GROUP;
  int row = isBias ? 0 : group * ROWS;
  int tap = row / BLOCK;
  ivec4 first = groupsOfFilters(f) * GROUP_READ + row - tap * BLOCK;
  ivec2 offset = ivec2(tap / WINDOW.y, tap % WINDOW.y) * DILATION - PADDING;
  vec4 total[ROWS];
#define CLEAR_TOTAL(i) total[i] = vec4(0.);
  EACH_ROW(CLEAR_TOTAL)

  int lines = (uRows + 3) / 4 * OUTPUT.x;
  ivec2 share = shareOf(lines, split);
  int start = share.x, last = share.y;
  for (int line = start; line < last; line++) {
    int window = line % OUTPUT.x;
    int y = window * STRIDE.x + offset.x;
    if (!isBias && (y < 0 || y >= INPUT.x)) continue;
    vec4 part[ROWS];
#define CLEAR(i) part[i] = vec4(0.);
    EACH_ROW(CLEAR)
    for (int q = 0; q < 4; q++) {
      int m = line / OUTPUT.x * 4 + q;
      int dLayer = DY_layer(m), dBase = DY_base(m), xLayer = X_layer(m), xBase = X_base(m);
      for (int column = 0; column < OUTPUT.y; column++) {
        int x = column * STRIDE.y + offset.y;
        if (!isBias && (x < 0 || x >= INPUT.y)) continue;
        int texel = (y * INPUT.y + x) * X_TEXELS_PER_PIXEL;
        vec4 d = DY_fetch(dLayer, dBase, (window * OUTPUT.y + column) * TEXELS_PER_ROW + f);
        if (isBias) {
          part[0] += d;
          continue;
        }
        // Rows past the group's last are dropped as padding.
#define MULTIPLY(i) { \
        ivec4 c = min(first + i, ivec4(CHANNELS_READ - 1)); \
        part[i] += d * vec4( \
          X_fetch(xLayer, xBase, texel + (c.x >> 2))[c.x & 3], X_fetch(xLayer, xBase, texel + (c.y >> 2))[c.y & 3], \
          X_fetch(xLayer, xBase, texel + (c.z >> 2))[c.z & 3], X_fetch(xLayer, xBase, texel + (c.w >> 2))[c.w & 3]); }
        EACH_ROW(MULTIPLY)
      }
    }
#define FLUSH(i) total[i] += part[i];
    EACH_ROW(FLUSH)
  }
#define OUT(i) STORE(oDW[i], paddedWeight(total[i], f, group * ROWS + i));
  EACH_ROW(OUT)
}
