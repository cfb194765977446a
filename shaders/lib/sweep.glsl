// sweep: goes through the elements of a set, or of part of one, texel by texel, for the ROWS rows of a fragment at once.
// X is what the set lies in; sets are those of lib/sets.glsl.

// Pixels first ... last - 1 and texels low ... high - 1 of each; the set's first channel.
#ifdef PIXELWISE
#define SWEEP_RANGE(set, part) \
  const int origin = 0, low = 0, high = X_TEXELS_PER_PIXEL; \
  int first = set, last = set + 1;
#else
#define SWEEP_RANGE(set, part) \
  int origin = set * GROUP_CHANNELS, low = origin / 4, high = (origin + GROUP_CHANNELS + 3) / 4; \
  int first = (part) * PART_PIXELS, last = min(first + PART_PIXELS, PIXELS);
#endif

// Its own channels of a texel that groups may share, and that padding may follow; the others 0.
#if GROUP_CHANNELS % 4 == 0
#define OWN(value, c) (value)
#else
#define OWN(value, c) mix(vec4(0.), value, lessThan(uvec4(4 * (c) - origin + ivec4(0, 1, 2, 3)), uvec4(GROUP_CHANNELS)))
#endif

// Adds up in `part[i]` by ADD(i), which knows `texel` and `c` and what BEFORE declares; FLUSH(i) takes what 64 texels of a pixel gave.
#define CLEAR(i) part[i] = vec4(0.);
#define SWEEP(BEFORE, ADD, FLUSH) \
  for (int pixel = first; pixel < last; pixel++) { \
    for (int start = low; start < high; start += BLOCK) { \
      EACH_ROW(CLEAR) \
      int end = min(start + BLOCK, high); \
      for (int c = start; c < end; c++) { \
        int texel = pixel * X_TEXELS_PER_PIXEL + c; \
        BEFORE \
        EACH_ROW(ADD) \
      } \
      EACH_ROW(FLUSH) \
    } \
  }
