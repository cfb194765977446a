// gated_grad_weights: DW^T = DZ^T @ X, and db = column sums of DZ, where DZ = (DY @ V^T) * G is stored as gates and factors     forward: affine, see gates
// G, F [M/8,N/4+2]  X [M,K]  ->  DW [N,K], behind it db in first lanes, a texel for each 8   8 columns of DZ and 4 of X a fragment
// Adds DY X where gates are open, over M in blocks of 256 samples, f32, then multiplies by V; error <= ~ (258 + M/256) * 2^-24 * sum|x||dz|
// Padding is written as 0; texels behind the last bias repeat it.
// Reference: browser_runtime/reference/dense.js
#include "lib/gates.glsl"

// Of 8 samples all fetches come first, on no condition: a GPU then waits for them together.
#define LOAD(i) { X_Row row = X_rowAt(m, i); samples[i] = X_at(row, column); }
#define DY_OF(i) (i < 4 ? first : second)[i & 3]
// What sample m + i adds to the sums whose gates are open.
#define ADD(i) { \
  vec4 x = samples[i] * DY_OF(i); \
  WHERE_OPEN(gates0, i, 0, part[0], x) WHERE_OPEN(gates0, i, 1, part[1], x) WHERE_OPEN(gates0, i, 2, part[2], x) WHERE_OPEN(gates0, i, 3, part[3], x) \
  WHERE_OPEN(gates1, i, 0, part[4], x) WHERE_OPEN(gates1, i, 1, part[5], x) WHERE_OPEN(gates1, i, 2, part[6], x) WHERE_OPEN(gates1, i, 3, part[7], x) }
#define ADD_BIAS(i) \
  WHERE_OPEN(gates0, i, 0, part[0].x, DY_OF(i)) WHERE_OPEN(gates0, i, 1, part[1].x, DY_OF(i)) WHERE_OPEN(gates0, i, 2, part[2].x, DY_OF(i)) \
  WHERE_OPEN(gates0, i, 3, part[3].x, DY_OF(i)) WHERE_OPEN(gates1, i, 0, part[4].x, DY_OF(i)) WHERE_OPEN(gates1, i, 1, part[5].x, DY_OF(i)) \
  WHERE_OPEN(gates1, i, 2, part[6].x, DY_OF(i)) WHERE_OPEN(gates1, i, 3, part[7].x, DY_OF(i))

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, k = place.y;
  X_Column column = X_column(k);
  // The bias is the weight of an input that is always 1: a quarter of the sums, and no X. Fragments past the last one repeat it.
  bool isBias = group >= BIASES_FROM;
  if (isBias) group = min((group - BIASES_FROM) * TEXELS_PER_ROW + k, BIASES_FROM - 1);
  vec4 total[ROWS];
#define CLEAR_TOTAL(i) total[i] = vec4(0.);
  EACH_ROW(CLEAR_TOTAL)

  for (int start = 0; start < uRows; start += 256) {
    vec4 part[ROWS];
#define CLEAR(i) part[i] = vec4(0.);
    EACH_ROW(CLEAR)
    int end = min(start + 256, uRows);
    for (int m = start; m < end; m += SAMPLES) {
      int line = m >> 3;
      uint gates0 = gatesAt(line, 2 * group), gates1 = gatesAt(line, 2 * group + 1);
      vec4 first = rowFactors(line, 0), second = rowFactors(line, 1);
      if (isBias) {
        EACH_SAMPLE(ADD_BIAS)
      } else {
        vec4 samples[SAMPLES];
        EACH_SAMPLE(LOAD)
        EACH_SAMPLE(ADD)
      }
    }
#define FLUSH(i) total[i] += part[i];
    EACH_ROW(FLUSH)
  }

  vec4 left = columnFactors(2 * group), right = columnFactors(2 * group + 1);
#define OUT(i) STORE(oDW[i], 8 * group + i < DZ_COLUMNS ? total[i] * (i < 4 ? left : right)[i & 3] : vec4(0.));
  EACH_ROW(OUT)
}
