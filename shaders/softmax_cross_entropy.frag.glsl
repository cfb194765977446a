// softmax_cross_entropy: the losses of rows and their gradient, for rows longer than a texel
// Z [M,N] logits, T [M,N] probabilities or class numbers [M,1]  ->  DZ [M,N], L (row losses, written by the first column's fragment), C
// loss = sum_n y_n (logsumexp(z) - z_n); DZ = (softmax(z) * sum(y) - y) / M; sums over N in lanes of 4, f32
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/losses.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"
#include "lib/labels.glsl"

bvec4 inside(int n) { return lessThan(ivec4(0, 1, 2, 3) + 4 * n, ivec4(COLUMNS)); }

vec4 targetAt(int layer, int base, int n) {
#if LABELS == LABELS_INDEX
  return vec4(equal(ivec4(0, 1, 2, 3) + 4 * n, ivec4(int(T_fetch(layer, base, 0).x))));
#else
  return T_fetch(layer, base, n);
#endif
}

int firstLane(vec4 v, float value) { return v.x == value ? 0 : v.y == value ? 1 : v.z == value ? 2 : 3; }
float largest(vec4 v) { return max(max(v.x, v.y), max(v.z, v.w)); }

// exp(z - top) in the lanes inside the row, 0 in the others.
vec4 exponentials(vec4 z, float top, int n) {
  vec4 e = vec4(0.);
  for (int c = 0; c < min(4, COLUMNS - 4 * n); c++) e[c] = tg_exp(z[c] - top);
  return e;
}

struct Row {
  float loss;
  float correct;
  vec4 grad;
};

Row rowLoss(int row, int n) {
  int zLayer = Z_layer(row), zBase = Z_base(row), tLayer = T_layer(row), tBase = T_base(row);
  // The first largest logit is the prediction, the first largest target the class.
  float top = -tg_inf(), best = -1.;
  int predicted = -1, wanted = -1;
  for (int c = 0; c < Z_TEXELS_PER_ROW; c++) {
    vec4 z = mix(vec4(-tg_inf()), Z_fetch(zLayer, zBase, c), inside(c));
    float high = largest(z);
    if (high > top) { top = high; predicted = 4 * c + firstLane(z, high); }
#ifdef WITH_ACCURACY
    vec4 y = mix(vec4(-1.), targetAt(tLayer, tBase, c), inside(c));
    high = largest(y);
    if (high > best) { best = high; wanted = 4 * c + firstLane(y, high); }
#endif
  }
  // Subtract the row maximum: exp overflows float32 above 88.7.
  float total = 0., weight = 0., toward = 0.;
  vec4 own = vec4(0.);
  for (int start = 0; start < Z_TEXELS_PER_ROW; start += BLOCK) {
    vec3 part = vec3(0.);
    int end = min(start + BLOCK, Z_TEXELS_PER_ROW);
    for (int c = start; c < end; c++) {
      vec4 z = Z_fetch(zLayer, zBase, c);
      vec4 e = exponentials(z, top, c);
      vec4 y = mix(vec4(0.), targetAt(tLayer, tBase, c), inside(c));
      part += vec3(dot(e, vec4(1.)), dot(y, vec4(1.)), dot(mix(vec4(0.), y * (top - z), inside(c)), vec4(1.)));
      if (c == n) own = e;
    }
    total += part.x;
    weight += part.y;
    toward += part.z;
  }
  return Row(weight * tg_log(total) + toward, float(predicted == wanted), own / total * weight - targetAt(tLayer, tBase, n));
}

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  vec4 losses = vec4(0.), corrects = vec4(0.);
  vec4 grad[ROWS];
  // A loop and not a macro: inlined 4 times, exp and log take a software renderer long to compile.
  for (int i = 0; i < ROWS; i++) {
    int row = group * ROWS + i;
    Row r = Row(0., 0., vec4(0.));
    if (row < uRows) r = rowLoss(row, n);
    losses[i] = n == 0 ? r.loss * uInverseRows : 0.;
    corrects[i] = n == 0 ? r.correct : 0.;
#if GRAD_ACTIVATION == LINEAR
    vec4 dz = r.grad * uInverseRows;
#else
    vec4 dz = activationGrad(r.grad * uInverseRows, Z_fetch(Z_layer(row), Z_base(row), n));
#endif
    grad[i] = padded(dz, n, row);
  }
#ifdef WITH_GRAD
#define OUT(i) STORE(oDZ[i], grad[i]);
  EACH_ROW(OUT)
#endif
  STORE(oL[0], losses);
#ifdef WITH_ACCURACY
  STORE(oC[0], corrects);
#endif
}
