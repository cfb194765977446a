// sample_norm_statistics: mean and 1 / sqrt(variance + eps) of each set (lib/sets.glsl) of a sample     backward: none of its own
// X [M,H,W,C]  ->  S [M,sets,2]   ROWS samples of a set a fragment
// Long sets take two draws: with PARTIAL, P [M,sets*PARTS,2] are the means and the sums of squared deviations from them of PARTS parts of each set;
// with MERGE they are merged (Chan, Golub, LeVeque): squares + n (mean of the part - mean)^2.
// Two passes, mean first; each adds up to 64 texels of a pixel, then pixels, then parts, f32; error of the mean <= ~ k 2^-24 mean|x|, of the variance
// <= ~ k 2^-24 variance + (error of the mean)^2, k = 64 + pixels + PARTS at most
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/sample_norm.js
#include "lib/epilogue.glsl"
#include "lib/sweep.glsl"

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x;
#ifdef PARTIAL
  int set = place.y / PARTS;
  int which = place.y - set * PARTS;
#else
  int set = place.y;
  const int which = 0;
#endif
  float mean[ROWS];
  float squares[ROWS];
  int layer[ROWS];
  int base[ROWS];

#ifdef MERGE
#define LOCATE(i) layer[i] = P_layer(group * ROWS + i); base[i] = P_base(group * ROWS + i); mean[i] = 0.; squares[i] = 0.;
  EACH_ROW(LOCATE)
  const float count = float(PIXELS * GROUP_CHANNELS);
#define COUNT(p) float((min((p) * PART_PIXELS + PART_PIXELS, PIXELS) - (p) * PART_PIXELS) * GROUP_CHANNELS)
  for (int p = 0; p < PARTS; p++) {
    float n = COUNT(p);
#define ADD_MEAN(i) mean[i] += n * P_fetch(layer[i], base[i], set * PARTS + p).x;
    EACH_ROW(ADD_MEAN)
  }
#define DIVIDE(i) mean[i] /= count;
  EACH_ROW(DIVIDE)
  for (int p = 0; p < PARTS; p++) {
    float n = COUNT(p);
#define ADD_SQUARES(i) { vec4 m = P_fetch(layer[i], base[i], set * PARTS + p); float d = m.x - mean[i]; squares[i] += m.y + n * d * d; }
    EACH_ROW(ADD_SQUARES)
  }
#else
  SWEEP_RANGE(set, which)
  float count = float((last - first) * GROUP_CHANNELS);
  vec4 part[ROWS];
  vec4 total[ROWS];
#define LOCATE(i) layer[i] = X_layer(group * ROWS + i); base[i] = X_base(group * ROWS + i); total[i] = vec4(0.);
  EACH_ROW(LOCATE)
#define FLUSH(i) total[i] += part[i];
#define ADD_VALUE(i) part[i] += OWN(X_fetch(layer[i], base[i], texel), c);
  SWEEP(, ADD_VALUE, FLUSH)
#define MEAN(i) mean[i] = dot(total[i], vec4(1.)) / count; total[i] = vec4(0.);
  EACH_ROW(MEAN)
#define ADD_SQUARE(i) { vec4 d = OWN(X_fetch(layer[i], base[i], texel) - mean[i], c); part[i] += d * d; }
  SWEEP(, ADD_SQUARE, FLUSH)
#define SQUARES(i) squares[i] = dot(total[i], vec4(1.));
  EACH_ROW(SQUARES)
#endif

#ifdef PARTIAL
#define OUT(i) STORE(oP[i], padded(vec4(mean[i], squares[i], 0., 0.), place.y, group * ROWS + i));
#else
#define OUT(i) STORE(oS[i], padded(vec4(mean[i], 1. / sqrt(squares[i] / count + EPS), 0., 0.), place.y, group * ROWS + i));
#endif
  EACH_ROW(OUT)
}
