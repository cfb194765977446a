// conv2d_grad_input: DX = (DY correlated with W turned by 180 degrees) * act'     forward: conv2d
// DY [M,OH,OW,F]  W [KH,KW,C/G,F]  G [M,H,W,C]  ->  DX [M,H,W,C]   ROWS samples and 4 channels of a pixel a fragment
// A channel meets the filters of its group: READ_TEXELS of X and MADE_TEXELS of Y each. TRANSPOSED is that of conv2d_transpose.
// Accumulates over F/G and the taps of a kernel row, then over kernel rows, f32; error <= ~ (KW F/G + KH) * 2^-24 * sum|dy||w|
// A tap's rows of W begin TAP_ROWS behind those of the one before; there are TAP_CHANNELS, and a lane past the last one reads that one's.
// Padding lanes and rows are written as 0.
// G: what gives the slope of the activation that X was, lib/slope.glsl.
// Requires G = 1, or groups that fill their texels; else conv2d_grouped_grad_input.
// Reference: browser_runtime/reference/conv2d.js
#include "lib/epilogue.glsl"
#include "lib/slope.glsl"
#include "lib/taps.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int channels = channelTexel(n);
  int first = channels / READ_TEXELS * MADE_TEXELS;
  ivec2 read = ivec2(n / TEXELS_PER_PIXEL / READ.y, n / TEXELS_PER_PIXEL % READ.y);
  ivec4 rows = min(ivec4(0, 1, 2, 3) + channels % READ_TEXELS * 4, ivec4(TAP_CHANNELS - 1));
  vec4 total[ROWS];
  int layer[ROWS];
  int base[ROWS];
#define LOCATE(i) total[i] = vec4(0.); layer[i] = DY_layer(group * ROWS + i); base[i] = DY_base(group * ROWS + i);
  EACH_ROW(LOCATE)

  EACH_TAP(madeRow, madeColumn, read)
    int texel = (y * MADE.y + x) * DY_TEXELS_PER_PIXEL + first;
    ivec4 k = tap * TAP_ROWS + rows;
    ivec4 wLayer = ivec4(W_layer(k.x), W_layer(k.y), W_layer(k.z), W_layer(k.w));
    ivec4 wBase = ivec4(W_base(k.x), W_base(k.y), W_base(k.z), W_base(k.w));
    for (int f = 0; f < MADE_TEXELS; f++) {
      vec4 w0 = W_fetch(wLayer.x, wBase.x, first + f);
      vec4 w1 = W_fetch(wLayer.y, wBase.y, first + f);
      vec4 w2 = W_fetch(wLayer.z, wBase.z, first + f);
      vec4 w3 = W_fetch(wLayer.w, wBase.w, first + f);
#define ADD(i) { vec4 d = DY_fetch(layer[i], base[i], texel + f); part[i] += vec4(dot(d, w0), dot(d, w1), dot(d, w2), dot(d, w3)); }
      EACH_ROW(ADD)
    }
  END_EACH_TAP

#define OUT(i) STORE(oDX[i], padded(SLOPED(total[i], n, group * ROWS + i), n, group * ROWS + i));
  EACH_ROW(OUT)
}
