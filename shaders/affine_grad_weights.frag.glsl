// affine_grad_weights: DW = X^T @ DY, db = column sums of DY, and where OPTIMIZER is given the update instead of DW     forward: affine
// X [M,K]  DY [M,N]  ->  DW [K,N] with db in the bias row, or W and its states updated   ROWS weight rows and 4 columns a fragment; X's columns may be uniform blocks
// With SPLITS: DW [SPLITS,K,N], the sums of as many runs of consecutive samples; update or sum_parts adds them.
// Accumulates over M in blocks of 256 samples, f32; error <= ~ (256 + M/256) * 2^-24 * sum|x||dy|; with SPLITS, once they are added, (256 + M/(256 SPLITS) + SPLITS)
// Padding is written as 0.
// Reference: browser_runtime/reference/dense.js
#include "lib/epilogue.glsl"
#ifdef OPTIMIZER
#include "lib/optimizer.glsl"
#endif
#ifdef SPLITS
#include "lib/share.glsl"
#endif

// SAMPLES are taken at once. Where that is a multiple of the layers that X and DY interleave over, each one's layer is a constant, and a small net's
// few fragments wait for all their fetches together instead of one after the other; 1 is the least to compile. Rows past the batch, up to a
// multiple of 16, are 0.
#if SAMPLES == 1
#define X_SAMPLE(j) X_row(m)
#define DY_SAMPLE(j) DY_row(m)
#else
#define X_SAMPLE(j) X_rowAt(m, j)
#define DY_SAMPLE(j) DY_rowAt(m, j)
#endif

// The bias is the weight of an input that is always 1: no loop of its own, which would be compiled once more. The other rows of its group are padding.
#if BIAS_ROW >= 0
#define FIRST(x) (group == BIAS_GROUP ? 1. : x)
#else
#define FIRST(x) x
#endif

// The ROWS weight rows of a group are columns of X: those of one texel, of two, or of a part of one.
#ifdef UNIFORM_SAMPLES
// A draw sees one row group, whose columns of X lie in a uniform block: all fragments load the same address. One element for all samples that are taken at
// once: an index that varies is clamped once.
struct Samples { vec4 inputs[2 * SAMPLES]; };
layout(std140) uniform Rows { Samples uSamples[UNIFORM_SAMPLES / SAMPLES]; };
#elif ROWS == 8
#define MULTIPLY \
  part[0] += FIRST(x.x) * d; part[1] += x.y * d; part[2] += x.z * d; part[3] += x.w * d; \
  x = isWide ? X_at(row, input1) : vec4(0.); \
  part[4] += x.x * d; part[5] += x.y * d; part[6] += x.z * d; part[7] += x.w * d;
#elif ROWS == 4
#define MULTIPLY part[0] += FIRST(x.x) * d; part[1] += x.y * d; part[2] += x.z * d; part[3] += x.w * d;
#elif ROWS == 2
#define MULTIPLY x.xy = (group & 1) == 0 ? x.xy : x.zw; part[0] += FIRST(x.x) * d; part[1] += x.y * d;
#else
#define MULTIPLY part[0] += FIRST(x[group & 3]) * d;
#endif
#ifdef UNIFORM_SAMPLES
#define ADD(j) { \
  DY_Row gradient = DY_SAMPLE(j); \
  vec4 d = DY_at(gradient, column), x = uSamples[m / SAMPLES].inputs[2 * j], z = uSamples[m / SAMPLES].inputs[2 * j + 1]; \
  part[0] += x.x * d; part[1] += x.y * d; part[2] += x.z * d; part[3] += x.w * d; \
  part[4] += z.x * d; part[5] += z.y * d; part[6] += z.z * d; part[7] += z.w * d; }
#else
#define ADD(j) { \
  DY_Row gradient = DY_SAMPLE(j); \
  X_Row row = X_SAMPLE(j); \
  vec4 d = DY_at(gradient, column), x = X_at(row, input0); \
  MULTIPLY }
#endif

// One block needs no loop over them, which is compiled even for one turn.
#ifdef MANY_SAMPLES
#define EACH_BLOCK for (int start = first; start < last; start += 256)
#else
#define EACH_BLOCK int start = first;
#endif

void main() {
  ivec2 place = fragmentPlace();
#ifdef SPLITS
  int split = place.x / WEIGHT_GROUPS, group = place.x - split * WEIGHT_GROUPS, n = place.y;
  ivec2 share = shareOf((uRows + 15) / 16, split) * 16;
  int first = share.x, last = share.y;
#else
  int group = place.x, n = place.y;
  int first = 0, last = uRows;
#endif
  DY_Column column = DY_column(n);
#ifndef UNIFORM_SAMPLES
  // The bias's row group has no columns of X.
  int texel = group == BIAS_GROUP ? 0 : min(ROW_OF(group, 0) >> 2, X_TEXELS_PER_ROW - 1);
  X_Column input0 = X_column(texel);
#if ROWS == 8
  bool isWide = ROW_OF(group, 4) >> 2 < X_TEXELS_PER_ROW;
  X_Column input1 = X_column(isWide ? ROW_OF(group, 4) >> 2 : texel);
#endif
#endif
  vec4 total[ROWS];
  vec4 part[ROWS];
#define CLEAR_TOTAL(i) total[i] = vec4(0.);
#define CLEAR(i) part[i] = vec4(0.);
#define FLUSH(i) total[i] += part[i];
  EACH_ROW(CLEAR_TOTAL)

  EACH_BLOCK {
    EACH_ROW(CLEAR)
    int end = min(start + 256, last);
    for (int m = start; m < end; m += SAMPLES) { EACH_SAMPLE(ADD) }
    EACH_ROW(FLUSH)
  }

#ifdef OPTIMIZER
#define OUT(i) UPDATE(i, total[i], ROW_OF(group, i))
#else
#define OUT(i) STORE(oDW[i], paddedWeight(total[i], n, ROW_OF(group, i)));
#endif
  EACH_ROW(OUT)
}
