// sample_norm_grad_sums: means over each set of DY gamma, and of DY gamma times the normalized X     forward: sample_norm; then: sample_norm_grad_input
// X [M,H,W,C]  S [M,sets,2]  DY [M,H,W,C]  W [1,C]  ->  SUMS [M,sets,2]   ROWS samples of a set a fragment
// Long sets take two draws: with PARTIAL, P [M,sets*PARTS,2] are sums of PARTS parts of each set; with MERGE they are added.
// Adds up to 64 texels of a pixel, then pixels, then parts, f32; error <= ~ (64 + pixels + PARTS) * 2^-24 * mean|dy gamma x'|
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
  vec2 sums[ROWS];

#ifdef MERGE
#define ADD_PART(i) sums[i] += P_fetch(P_layer(group * ROWS + i), P_base(group * ROWS + i), set * PARTS + p).xy;
#define BEGIN(i) sums[i] = vec2(0.);
  EACH_ROW(BEGIN)
  for (int p = 0; p < PARTS; p++) { EACH_ROW(ADD_PART) }
#else
  SWEEP_RANGE(set, which)
  vec4 part[ROWS];
  vec4 part2[ROWS];
  vec4 total[ROWS];
  vec4 total2[ROWS];
  vec2 s[ROWS];
#define LOCATE(i) total[i] = total2[i] = part2[i] = vec4(0.); s[i] = S_fetch(S_layer(group * ROWS + i), S_base(group * ROWS + i), set).xy;
  EACH_ROW(LOCATE)
#define GAMMA vec4 gamma = W_fetch(W_layer(0), W_base(0), c);
#define ADD(i) { \
    int row = group * ROWS + i; \
    vec4 g = OWN(DY_fetch(DY_layer(row), DY_base(row), texel) * gamma, c); \
    part[i] += g; \
    part2[i] += g * ((X_fetch(X_layer(row), X_base(row), texel) - s[i].x) * s[i].y); }
#define FLUSH(i) total[i] += part[i]; total2[i] += part2[i]; part2[i] = vec4(0.);
  SWEEP(GAMMA, ADD, FLUSH)
#define SUM(i) sums[i] = vec2(dot(total[i], vec4(1.)), dot(total2[i], vec4(1.)));
  EACH_ROW(SUM)
#endif

#ifdef PARTIAL
#define OUT(i) STORE(oP[i], padded(vec4(sums[i], 0., 0.), place.y, group * ROWS + i));
#else
#define OUT(i) STORE(oSUMS[i], padded(vec4(sums[i] / float(VALUES), 0., 0.), place.y, group * ROWS + i));
#endif
  EACH_ROW(OUT)
}
