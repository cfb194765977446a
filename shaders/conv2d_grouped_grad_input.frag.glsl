// conv2d_grouped_grad_input: conv2d_grad_input for groups of any number of channels     forward: conv2d_grouped
// DY [M,OH,OW,F]  W [KH,KW,C/G,F]  G [M,H,W,C]  ->  DX [M,H,W,C]   ROWS samples and 4 channels of a pixel a fragment
// The channels of a texel may be of several groups, so each takes its own filter, one at a time.
// Accumulates over F/G and the taps of a kernel row, then over kernel rows, f32; error <= ~ (KW F/G + KH) * 2^-24 * sum|dy||w|
// Padding lanes and rows are written as 0. G: what gives the slope of the activation that X was, lib/slope.glsl.
// Reference: browser_runtime/reference/conv2d.js
#include "lib/epilogue.glsl"
#include "lib/groups.glsl"
#include "lib/slope.glsl"
#include "lib/taps.glsl"

// Filter f of a pixel for each of 4 channels.
vec4 filters(int layer, int base, int texel, ivec4 f) {
#if GROUP_READ % 4 == 0
  return vec4(DY_fetch(layer, base, texel + (f.x >> 2))[f.x & 3]);
#else
  return vec4(
    DY_fetch(layer, base, texel + (f.x >> 2))[f.x & 3], DY_fetch(layer, base, texel + (f.y >> 2))[f.y & 3],
    DY_fetch(layer, base, texel + (f.z >> 2))[f.z & 3], DY_fetch(layer, base, texel + (f.w >> 2))[f.w & 3]);
#endif
}

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  int texelOfPixel = channelTexel(n);
  ivec4 groups = groupsOfChannels(texelOfPixel);
  ivec4 first = groups * GROUP_MADE;
  ivec4 rowOfGroup = min(LANES + 4 * texelOfPixel, ivec4(CHANNELS_READ - 1)) - groups * GROUP_READ;
  ivec2 read = ivec2(n / TEXELS_PER_PIXEL / READ.y, n / TEXELS_PER_PIXEL % READ.y);
  vec4 total[ROWS];
  int layer[ROWS];
  int base[ROWS];
#define LOCATE(i) total[i] = vec4(0.); layer[i] = DY_layer(group * ROWS + i); base[i] = DY_base(group * ROWS + i);
  EACH_ROW(LOCATE)

  EACH_TAP(madeRow, madeColumn, read)
    int texel = (y * MADE.y + x) * DY_TEXELS_PER_PIXEL;
    ivec4 k = tap * BLOCK + rowOfGroup;
    ivec4 wLayer = ivec4(W_layer(k.x), W_layer(k.y), W_layer(k.z), W_layer(k.w));
    ivec4 wBase = ivec4(W_base(k.x), W_base(k.y), W_base(k.z), W_base(k.w));
    for (int i = 0; i < GROUP_MADE; i++) {
      ivec4 f = first + i;
      vec4 w = vec4(
        W_fetch(wLayer.x, wBase.x, f.x >> 2)[f.x & 3], W_fetch(wLayer.y, wBase.y, f.y >> 2)[f.y & 3],
        W_fetch(wLayer.z, wBase.z, f.z >> 2)[f.z & 3], W_fetch(wLayer.w, wBase.w, f.w >> 2)[f.w & 3]);
#define ADD(i) part[i] += filters(layer[i], base[i], texel, f) * w;
      EACH_ROW(ADD)
    }
  END_EACH_TAP

#define OUT(i) STORE(oDX[i], padded(SLOPED(total[i], n, group * ROWS + i), n, group * ROWS + i));
  EACH_ROW(OUT)
}
