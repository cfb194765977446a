// softmax: statistics of a row of logits Z against its targets T, and the gradient from them. For rows of any length.
// With the largest logit subtracted its own exponential is 1, so sum exp = 1 + rest, and rest is what confident rows are about:
// log1p(rest) and -rest stay exact where log(1 + rest) and 1 / (1 + rest) - 1 would round to 0.
// LABELS: lib/labels.glsl. exp and log stand in loops once each: see lib/loss.glsl.
#include "lib/labels.glsl"
#include "lib/lane.glsl"
#include "lib/math.glsl"

struct Statistics {
  float top;      // the largest logit
  float rest;     // sum exp(z - top) over all but the first largest logit
  float weight;   // sum of the targets: 1 for probabilities
  float loss;     // sum_n y_n (logsumexp(z) - z_n) = weight * log1p(rest) + sum_n y_n (top - z_n)
  float correct;  // 1 where the first largest logit stands where the first largest target does
};

bvec4 inside(int n) { return lessThan(ivec4(0, 1, 2, 3) + 4 * n, ivec4(Z_COLUMNS)); }
int firstLane(vec4 v, float value) { return v.x == value ? 0 : v.y == value ? 1 : v.z == value ? 2 : 3; }
float largest(vec4 v) { return max(max(v.x, v.y), max(v.z, v.w)); }

// Class numbers become a one-hot row.
vec4 givenAt(int layer, int base, int n) {
#if LABELS == LABELS_INDEX
  return vec4(equal(ivec4(0, 1, 2, 3) + 4 * n, ivec4(int(T_fetch(layer, base, 0).x))));
#else
  return T_fetch(layer, base, n);
#endif
}

// As the loss takes them: smoothed, and times the weights of the classes.
vec4 taken(vec4 y, int n) {
#ifdef SMOOTHING
  y = vec4(smoothed(y.x, float(Z_COLUMNS)), smoothed(y.y, float(Z_COLUMNS)), smoothed(y.z, float(Z_COLUMNS)), smoothed(y.w, float(Z_COLUMNS)));
#endif
#ifdef WEIGHTED
  y *= classWeights(n);
#endif
  return y;
}

// exp(z - top) in the lanes inside the row, 0 in the others.
vec4 exponentials(vec4 z, float top, int n) {
  vec4 e = vec4(0.);
  for (int c = 0; c < min(4, Z_COLUMNS - 4 * n); c++) e = withLane(e, c, tg_exp(laneOf(z, c) - top));
  return e;
}

// TEXELS of a row are fetched at once, so that a GPU waits for them together; 1 is the least to compile. They divide a block; those past the row have no
// lanes inside it.
#ifndef TEXELS
#define TEXELS 1
#define EACH_TEXEL(F) F(0)
#endif
#if TEXELS == 1
#define TEXEL(j) n
#else
#define TEXEL(j) min(n + j, Z_TEXELS_PER_ROW - 1)
#endif
#define FETCH(j) z[j] = Z_fetch(zLayer, zBase, TEXEL(j)); given[j] = givenAt(tLayer, tBase, TEXEL(j));

Statistics rowStatistics(int row) {
  int zLayer = Z_layer(row), zBase = Z_base(row), tLayer = T_layer(row), tBase = T_base(row);
  vec4 z[TEXELS], given[TEXELS];
  float top = -tg_inf(), best = -1.;
  int predicted = -1, wanted = -1;
#define FIND(values, outside, most, at, j) { \
    vec4 v = mix(vec4(outside), values, inside(n + j)); \
    float high = largest(v); \
    if (high > most) { most = high; at = 4 * (n + j) + firstLane(v, high); } }
#ifdef WITH_ACCURACY
#define SEEK(j) FIND(z[j], -tg_inf(), top, predicted, j) FIND(given[j], -1., best, wanted, j)
#else
#define SEEK(j) FIND(z[j], -tg_inf(), top, predicted, j)
#endif
  for (int n = 0; n < Z_TEXELS_PER_ROW; n += TEXELS) { EACH_TEXEL(FETCH) EACH_TEXEL(SEEK) }

  // Subtract the row maximum: exp overflows float32 above 88.7.
  float rest = 0., weight = 0., toward = 0.;
#define ADD(j) { \
    vec4 y = mix(vec4(0.), taken(given[j], TEXEL(j)), inside(n + j)), e = exponentials(z[j], top, n + j); \
    if (predicted >> 2 == n + j) e = withLane(e, predicted & 3, 0.); \
    part += vec3(dot(e, vec4(1.)), dot(y, vec4(1.)), dot(mix(vec4(0.), y * (top - z[j]), inside(n + j)), vec4(1.))); }
  for (int start = 0; start < Z_TEXELS_PER_ROW; start += BLOCK) {
    vec3 part = vec3(0.);
    int end = min(start + BLOCK, Z_TEXELS_PER_ROW);
    for (int n = start; n < end; n += TEXELS) { EACH_TEXEL(FETCH) EACH_TEXEL(ADD) }
    rest += part.x;
    weight += part.y;
    toward += part.z;
  }
  return Statistics(top, rest, weight, weight * tg_log1p(rest) + toward, float(predicted == wanted));
}

// d loss / d z of a column texel.
vec4 rowGrad(int row, int n, float top, float rest, float weight) {
  vec4 e = exponentials(Z_fetch(Z_layer(row), Z_base(row), n), top, n);
  vec4 y = taken(givenAt(T_layer(row), T_base(row), n), n);
  return ((e * weight - y) - y * rest) / (1. + rest);
}
