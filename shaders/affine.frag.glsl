// affine: Y = act(X @ W + b), b where W has one, and where the loss rides along DZ, L and C instead of Y   backward: affine_grad_input, affine_grad_weights
// X [M,K]  W [K,N] and b in W's bias row  ->  Y [M,N]   ROWS rows and 4 columns a fragment; X may be a uniform block
// With LOSS: targets T [M,N] or class numbers [M,1]  ->  DZ [M,N], L (parts of the row losses) and C (of the accuracy), row i in lane i
// With SPLITS: Y [SPLITS,M,N], sums over as many parts of K, the bias in the first; whoever reads Y adds them.
// Accumulates over K in blocks of 256, from a uniform block up to 1,024 as one block of sums of four, f32; error <= ~ (256 + K/256) * 2^-24 * sum|x||w|,
// with SPLITS, once they are added, (256 + K/(256 SPLITS) + SPLITS)
// Padding lanes and rows are written as 0.
// Reference: browser_runtime/reference/dense.js
#include "lib/activation.glsl"
#include "lib/epilogue.glsl"
#ifdef LOSS
#include "lib/loss.glsl"
#endif

// Rows of one block need no loop over them, which is compiled even for one turn.
#ifdef SPLITS
#define SHARE (X_TEXELS_PER_ROW / SPLITS)
#define EACH_BLOCK for (int start = split * SHARE; start < (split + 1) * SHARE; start += BLOCK)
#define LAST ((split + 1) * SHARE)
#else
#define LAST X_TEXELS_PER_ROW
#if X_TEXELS_PER_ROW > BLOCK
#define EACH_BLOCK for (int start = 0; start < X_TEXELS_PER_ROW; start += BLOCK)
#else
#define EACH_BLOCK const int start = 0;
#endif
#endif
#ifdef UNIFORM_COLUMNS
// W's row `row + i` at column texel n; row is a multiple of 4 and i less than that, or of 16, so that layers and groups of both add up. One address, to which
// constants are added: beside uniform blocks the integers that make addresses cost time.
#define WEIGHT(row, i) W_fetch(W_layer(row) + W_layer(i), W_base(row) + (W_base(i) - W_base(0)), n)
#define WEIGHTS_OF(row, i) mat4(WEIGHT(row, i), WEIGHT(row, (i) + 1), WEIGHT(row, (i) + 2), WEIGHT(row, (i) + 3))
#if TEXELS == 4
#define WEIGHTS(j) WEIGHTS_OF(4 * first, 4 * (j))
#else
#define WEIGHTS(j) WEIGHTS_OF(4 * (first + (j)), 0)
#endif
#if X_TEXELS_PER_ROW > BLOCK
// Each product is added to the sum so far: an instruction less than a sum of four takes.
#define ADD_PRODUCT(sum, x, w) sum = x.x * w[0] + sum; sum = x.y * w[1] + sum; sum = x.z * w[2] + sum; sum = x.w * w[3] + sum;
#else
#define ADD_PRODUCT(sum, x, w) sum += x.x * w[0] + x.y * w[1] + x.z * w[2] + x.w * w[3];
#endif
#include "lib/uniform_rows.glsl"
#define LOCATE(i) total[i] = vec4(0.);
#else
#define ROW_OF_WEIGHTS(k, i) W_fetch(W_layer(4 * (k) + i), W_base(4 * (k) + i), n)
#if ROWS == 1
// TEXELS of X's row are taken at once, and all their fetches come before the first product: a GPU's compiler does not move them there, and few fragments wait
// for each of them.
#define LOAD(j) { \
  X_Column column = X_column(k + j); \
  x[j] = X_at(row[0], column); \
  w0[j] = ROW_OF_WEIGHTS(k + j, 0); w1[j] = ROW_OF_WEIGHTS(k + j, 1); w2[j] = ROW_OF_WEIGHTS(k + j, 2); w3[j] = ROW_OF_WEIGHTS(k + j, 3); }
#define MULTIPLY(j) part[0] += (x[j].x * w0[j] + x[j].y * w1[j]) + (x[j].z * w2[j] + x[j].w * w3[j]);
#define ADD_PRODUCTS(k) vec4 x[TEXELS], w0[TEXELS], w1[TEXELS], w2[TEXELS], w3[TEXELS]; EACH_TEXEL(LOAD) EACH_TEXEL(MULTIPLY)
#else
#ifdef X_IS_RELU
// X is computed here. What its relu shuts adds nothing: a branch, which becomes a predicate. NaN adds NaN.
#define ADD_WHERE_OPEN(sum, x, w) if (!(x <= 0.)) sum += x * w;
#define ADD(i) { \
  vec4 x = X_sum(row[i], column); \
  ADD_WHERE_OPEN(part[i], x.x, w0) ADD_WHERE_OPEN(part[i], x.y, w1) ADD_WHERE_OPEN(part[i], x.z, w2) ADD_WHERE_OPEN(part[i], x.w, w3) }
#else
#define ADD(i) { vec4 x = X_at(row[i], column); part[i] += (x.x * w0 + x.y * w1) + (x.z * w2 + x.w * w3); }
#endif
// TEXELS of X's rows are taken at once: a GPU then waits for all their fetches together.
#define MULTIPLY(j) { \
  vec4 w0 = ROW_OF_WEIGHTS(k + j, 0), w1 = ROW_OF_WEIGHTS(k + j, 1), w2 = ROW_OF_WEIGHTS(k + j, 2), w3 = ROW_OF_WEIGHTS(k + j, 3); \
  X_Column column = X_column(k + j); \
  EACH_ROW(ADD) }
#define ADD_PRODUCTS(k) EACH_TEXEL(MULTIPLY)
#endif
#define LOCATE(i) total[i] = vec4(0.); row[i] = X_row(group * ROWS + i);
#endif

void main() {
  ivec2 place = fragmentPlace();
#ifdef SPLITS
  int split = place.x / SPLIT_GROUPS, group = place.x - split * SPLIT_GROUPS, n = place.y;
#else
  int group = place.x, n = place.y;
#endif
  vec4 total[ROWS];
#ifndef UNIFORM_COLUMNS
  X_Row row[ROWS];
#endif
  EACH_ROW(LOCATE)

  EACH_BLOCK {
    vec4 part[ROWS];
#define CLEAR(i) part[i] = vec4(0.);
    EACH_ROW(CLEAR)
    int end = min(start + BLOCK, LAST);
    for (int k = start; k < end; k += TEXELS) { ADD_PRODUCTS(k) }
#define FLUSH(i) total[i] += part[i];
    EACH_ROW(FLUSH)
  }

#if W_BIAS_ROW >= 0
  vec4 bias = W_fetch(W_layer(W_BIAS_ROW), W_base(W_BIAS_ROW), n);
#ifdef SPLITS
  bias = split == 0 ? bias : vec4(0.);
#endif
#define BIAS(i) total[i] += bias;
  EACH_ROW(BIAS)
#endif
#ifndef LOSS
#define OUT(i) STORE(oY[i], padded(activate(total[i]), n, group * ROWS + i));
  EACH_ROW(OUT)
#else
  // A loop, so that the loss is compiled once. Each turn takes the first row and puts its gradient behind the last one: an array that a variable
  // indexes would stay in memory.
  vec4 losses = vec4(0.), corrects = vec4(0.);
  for (int i = 0; i < ROWS; i++) {
    int row = group * ROWS + i;
    vec4 y = activate(total[0]);
    RowLoss r = rowLoss(y, T_fetch(T_layer(row), T_base(row), T_TEXELS_PER_ROW > 1 ? n : 0), n);
    bool inside = row < uRows;
    losses = withLane(losses, i, inside ? r.loss * rowShare(row) : 0.);
    corrects = withLane(corrects, i, inside ? r.correct : 0.);
#define TURN(i) total[i] = total[min(i + 1, ROWS - 1)];
    EACH_ROW(TURN)
    total[ROWS - 1] = padded(activationGrad(r.grad * rowShare(row), y), n, row);
  }
#ifdef WITH_GRAD
#define OUT(i) STORE(oDZ[i], total[i]);
  EACH_ROW(OUT)
#endif
  STORE(oL[0], losses);
#ifdef WITH_ACCURACY
  STORE(oC[0], corrects);
#endif
#endif
}
