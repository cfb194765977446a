// dropout: Y = X / kept where an element's word is below THRESHOLD = floor(kept 2^32), else 0; of a gradient times act'(G)     backward: dropout
// X [M,N]  G [M,N]  ->  Y [M,N]   ROWS samples and 4 columns a fragment; KEY and COUNTER: stream and layer, docs/page-protocol.md
// Two roundings.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/dropout.js
#include "lib/epilogue.glsl"
#include "lib/slope.glsl"
#include "lib/threefry.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  uvec2 key = tg_threefry2x32(KEY, uvec2(uint(uStep), COUNTER));
  int first = n / TEXELS_PER_PIXEL * CHANNELS + 4 * channelTexel(n);
  vec4 y[ROWS];
  // Loops, so that the cipher is inlined once.
  for (int i = 0; i < ROWS; i++) {
    int row = group * ROWS + i;
    uint element = uint(row) * uint(COLUMNS) + uint(first);
    // An element's word may be the second of its block: then the last of four lies in a third one.
    uint words[6];
    for (uint b = 0u; b < uint(2 + CHANNELS % 2); b++) {
      uvec2 block = tg_threefry2x32(key, uvec2((element >> 1u) + b, 0u));
      words[2u * b] = block.x;
      words[2u * b + 1u] = block.y;
    }
    vec4 x = X_fetch(X_layer(row), X_base(row), n);
    for (int c = 0; c < 4; c++) x[c] = words[(element & 1u) + uint(c)] < THRESHOLD ? x[c] * SCALE : 0.;
    y[i] = padded(SLOPED(x, n, row), n, row);
  }
#define OUT(i) STORE(oY[i], y[i]);
  EACH_ROW(OUT)
}
