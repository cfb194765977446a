// reshape: the elements of X in their order, as pixels of another number of channels; of a gradient times act'(G)     backward: reshape
// X [M,N] of pixels of FROM_CHANNELS  G [M,N]  ->  Y [M,N] of pixels of CHANNELS   ROWS samples and 4 channels of a pixel a fragment
// Exact.
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/move.js
#include "lib/epilogue.glsl"
#include "lib/slope.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  // Lanes past the pixel's last channel read what may be another pixel's: nobody sees what they hold.
  ivec4 element = min(n / TEXELS_PER_PIXEL * CHANNELS + 4 * channelTexel(n) + ivec4(0, 1, 2, 3), ivec4(COLUMNS - 1));
  ivec4 pixel = element / FROM_CHANNELS, channel = element - pixel * FROM_CHANNELS;
  ivec4 texel = pixel * X_TEXELS_PER_PIXEL + channel / 4, lane = channel % 4;
#define OUT(i) { \
    int row = group * ROWS + i, layer = X_layer(row), base = X_base(row); \
    vec4 y = vec4(X_fetch(layer, base, texel.x)[lane.x], X_fetch(layer, base, texel.y)[lane.y], X_fetch(layer, base, texel.z)[lane.z], X_fetch(layer, base, texel.w)[lane.w]); \
    STORE(oY[i], padded(SLOPED(y, n, row), n, row)); }
  EACH_ROW(OUT)
}
