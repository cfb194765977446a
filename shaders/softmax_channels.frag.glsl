// softmax_channels: Y = softmax(X) over the channels of each pixel     backward: softmax_channels_grad
// X [M,N] of pixels of CHANNELS each  ->  Y [M,N]   ROWS rows and 4 channels of a pixel a fragment, which looks through the pixel's channels
// Sums over the channels in blocks of 256, f32; error <= ~ (2^-24 |x - max| + (256 + C/256 + 16) * 2^-24) y
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/softmax_channels.js
#include "lib/epilogue.glsl"
#include "lib/math.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int own = channelTexel(n), first = n - own;
  vec4 y[ROWS];
  // Loops, so that exp is inlined twice.
  for (int i = 0; i < ROWS; i++) {
    int row = group * ROWS + i, layer = X_layer(row), base = X_base(row);
    float top = -tg_inf();
    for (int k = 0; k < TEXELS_PER_PIXEL; k++) {
      vec4 x = X_fetch(layer, base, first + k);
      for (int c = 0; c < min(4, CHANNELS - 4 * k); c++) top = x[c] > top ? x[c] : top;
    }
    // Subtract the largest: exp overflows float32 above 88.7. NaN is not larger, but reaches the sum.
    float total = 0.;
    for (int start = 0; start < TEXELS_PER_PIXEL; start += BLOCK) {
      float part = 0.;
      int end = min(start + BLOCK, TEXELS_PER_PIXEL);
      for (int k = start; k < end; k++) {
        vec4 x = X_fetch(layer, base, first + k);
        for (int c = 0; c < min(4, CHANNELS - 4 * k); c++) part += tg_exp(x[c] - top);
      }
      total += part;
    }
    vec4 x = X_fetch(layer, base, n);
    for (int c = 0; c < 4; c++) x[c] = tg_exp(x[c] - top);
    y[i] = padded(x / total, n, row);
  }
#define OUT(i) STORE(oY[i], y[i]);
  EACH_ROW(OUT)
}
