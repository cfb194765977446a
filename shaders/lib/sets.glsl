// sets: what sample_norm normalizes together: the channels of a pixel (PIXELWISE), or GROUP_CHANNELS channels at all PIXELS pixels.
// A tensor of a number or two a set has a texel for each.

// The set that a channel of a pixel belongs to.
#ifdef PIXELWISE
int setOf(int pixel, int channel) { return pixel; }
#else
int setOf(int pixel, int channel) { return min(channel / GROUP_CHANNELS, GROUPS - 1); }
#endif

// The two numbers of its set for each of the 4 channels that texel c of a pixel holds. Where a group fills its texels, all 4 are of one set.
#if defined(PIXELWISE) || GROUP_CHANNELS % 4 == 0 || GROUPS == 1
#define OF_SETS(fetch, layer, base, pixel, c, first, second) { \
    vec4 s = fetch(layer, base, setOf(pixel, 4 * (c))); \
    first = vec4(s.x); second = vec4(s.y); }
#else
// A loop, so that the fetch is inlined once.
#define OF_SETS(fetch, layer, base, pixel, c, first, second) \
  for (int lane = 0; lane < 4; lane++) { \
    vec4 s = fetch(layer, base, setOf(pixel, 4 * (c) + lane)); \
    first[lane] = s.x; second[lane] = s.y; }
#endif
