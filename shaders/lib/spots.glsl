// spots: goes through the samples and pixels of 4 channels. A spot is a pixel of 4 samples; a part is SPOTS spots, the last may be short.

// Elements of a channel before a spot: rows past the batch do not count.
int elementsBefore(int spot) {
  int whole = spot / PIXELS;
  return min(4 * whole, uRows) * PIXELS + (spot - whole * PIXELS) * clamp(uRows - 4 * whole, 0, 4);
}

// The first spot of a part, and of none after the last.
int firstSpot(int part) { return min(part * SPOTS, (uRows + 3) / 4 * PIXELS); }

// Adds up in `total` what ADD(row) adds to `block` for column texel n, 64 spots at a time.
#define EACH_SPOT(first, last, ADD) \
  for (int start = first; start < last; start += BLOCK) { \
    vec4 block = vec4(0.); \
    int end = min(start + BLOCK, last); \
    for (int spot = start; spot < end; spot++) { \
      int m = spot / PIXELS; \
      int pixel = spot - m * PIXELS; \
      int n = pixel * X_TEXELS_PER_PIXEL + c; \
      m *= 4; \
      ADD(m) ADD(m + 1) ADD(m + 2) ADD(m + 3) \
    } \
    total += block; \
  }
