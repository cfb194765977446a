// affine_grad_weights: DW = X^T @ DY, db = column sums of DY, and where OPTIMIZER is given the update instead of DW     forward: affine
// X [M,K]  DY [M,N]  ->  DW [K,N] with db in the bias row, or W and its states updated   ROWS weight rows and 4 columns a fragment
// Accumulates over M in blocks of 256 samples, f32; error <= ~ (256 + M/256) * 2^-24 * sum|x||dy|
// Padding is written as 0.
// Reference: browser_runtime/reference/dense.js
#include "lib/epilogue.glsl"
#ifdef OPTIMIZER
#include "lib/optimizer.glsl"
#endif

// SAMPLES are taken at once, a multiple of the layers that X and DY interleave over: each one's layer is a constant then, and a small net's few
// fragments wait for all their fetches together instead of one after the other. Rows past the batch, up to a multiple of 16, are 0.

// The ROWS weight rows of a group are columns ROWS * group ... of X.
#if ROWS == 8
#define MULTIPLY(j) { \
  DY_Row gradient = DY_rowAt(m, j); \
  X_Row row = X_rowAt(m, j); \
  vec4 d = DY_at(gradient, column), x = X_at(row, input0); \
  part[0] += x.x * d; part[1] += x.y * d; part[2] += x.z * d; part[3] += x.w * d; \
  x = isWide ? X_at(row, input1) : vec4(0.); \
  part[4] += x.x * d; part[5] += x.y * d; part[6] += x.z * d; part[7] += x.w * d; }
#elif ROWS == 4
#define MULTIPLY(j) { \
  DY_Row gradient = DY_rowAt(m, j); \
  X_Row row = X_rowAt(m, j); \
  vec4 d = DY_at(gradient, column), x = X_at(row, input0); \
  part[0] += x.x * d; part[1] += x.y * d; part[2] += x.z * d; part[3] += x.w * d; }
#elif ROWS == 2
#define MULTIPLY(j) { \
  DY_Row gradient = DY_rowAt(m, j); \
  X_Row row = X_rowAt(m, j); \
  vec4 d = DY_at(gradient, column), x = X_at(row, input0); \
  x.xy = (group & 1) == 0 ? x.xy : x.zw; \
  part[0] += x.x * d; part[1] += x.y * d; }
#else
#define MULTIPLY(j) { \
  DY_Row gradient = DY_rowAt(m, j); \
  X_Row row = X_rowAt(m, j); \
  vec4 d = DY_at(gradient, column), x = X_at(row, input0); \
  part[0] += x[group & 3] * d; }
#endif
#define SUM_BIAS(j) { DY_Row gradient = DY_rowAt(m, j); part[0] += DY_at(gradient, column); }

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  DY_Column column = DY_column(n);
  // The bias's row group has no columns of X.
  int first = group == BIAS_GROUP ? 0 : group * ROWS / 4;
  X_Column input0 = X_column(first);
#if ROWS == 8
  bool isWide = first + 1 < X_TEXELS_PER_ROW;
  X_Column input1 = X_column(isWide ? first + 1 : first);
#endif
  vec4 total[ROWS];
  vec4 part[ROWS];
#define CLEAR_TOTAL(i) total[i] = vec4(0.);
#define CLEAR(i) part[i] = vec4(0.);
#define FLUSH(i) total[i] += part[i];
  EACH_ROW(CLEAR_TOTAL)

  for (int start = 0; start < uRows; start += 256) {
    EACH_ROW(CLEAR)
    int end = min(start + 256, uRows);
    if (group == BIAS_GROUP) {
      for (int m = start; m < end; m += SAMPLES) { EACH_SAMPLE(SUM_BIAS) }
    } else {
      for (int m = start; m < end; m += SAMPLES) { EACH_SAMPLE(MULTIPLY) }
    }
    EACH_ROW(FLUSH)
  }

#ifdef OPTIMIZER
#define OUT(i) UPDATE(i, total[i], group * ROWS + i)
#else
#define OUT(i) STORE(oDW[i], paddedWeight(total[i], n, group * ROWS + i));
#endif
  EACH_ROW(OUT)
}
