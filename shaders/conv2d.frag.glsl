// conv2d: Y = act(X * W + b), b where W has one, * the correlation of every framework     backward: conv2d_grad_input, conv2d_grad_weights
// X [M,H,W,C]  W [KH,KW,C/G,F] and b in W's bias row  ->  Y [M,OH,OW,F]   ROWS samples and 4 filters of a pixel a fragment
// A filter sums its group: READ_TEXELS of X and MADE_TEXELS of Y each. TRANSPOSED is conv2d_transpose: see lib/taps.glsl.
// Accumulates over C/G and the taps of a kernel row, then over kernel rows, f32; error <= ~ (KW C/G + KH) * 2^-24 * sum|x||w|
// Padding lanes and rows are written as 0. All rows of a fragment read the same places of their layers and share each weight.
// Requires G = 1, or groups that fill their texels; else conv2d_grouped.
// Reference: browser_runtime/reference/conv2d.js
#include "lib/activation.glsl"
#include "lib/bias.glsl"
#include "lib/epilogue.glsl"
#include "lib/taps.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int filters = channelTexel(n);
  int first = filters / MADE_TEXELS * READ_TEXELS;
  ivec2 made = ivec2(n / TEXELS_PER_PIXEL / MADE.y, n / TEXELS_PER_PIXEL % MADE.y);
  vec4 total[ROWS];
  int layer[ROWS];
  int base[ROWS];
#define LOCATE(i) total[i] = vec4(0.); layer[i] = X_layer(group * ROWS + i); base[i] = X_base(group * ROWS + i);
  EACH_ROW(LOCATE)

  EACH_TAP(readRow, readColumn, made)
    int texel = (y * READ.y + x) * X_TEXELS_PER_PIXEL + first;
    int weights = tap * 4 * READ_TEXELS;
    for (int c = 0; c < READ_TEXELS; c++) {
      int k = weights + 4 * c;
      vec4 w0 = W_fetch(W_layer(k), W_base(k), filters);
      vec4 w1 = W_fetch(W_layer(k + 1), W_base(k + 1), filters);
      vec4 w2 = W_fetch(W_layer(k + 2), W_base(k + 2), filters);
      vec4 w3 = W_fetch(W_layer(k + 3), W_base(k + 3), filters);
#define ADD(i) { vec4 v = X_fetch(layer[i], base[i], texel + c); part[i] += (v.x * w0 + v.y * w1) + (v.z * w2 + v.w * w3); }
      EACH_ROW(ADD)
    }
  END_EACH_TAP

  vec4 bias = biasOf(filters);
#define OUT(i) STORE(oY[i], padded(activate(total[i] + bias), n, group * ROWS + i));
  EACH_ROW(OUT)
}
