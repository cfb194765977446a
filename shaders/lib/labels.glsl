// labels: what targets are. LABELS is one of the numbers below: class numbers, in the first lane of a row, or a value for each output.
#define LABELS_INDEX 1
#define LABELS_VALUES 2

// SMOOTHING moves targets towards 1 / count.
float smoothed(float y, float count) {
#ifdef SMOOTHING
  return (1. - SMOOTHING) * y + SMOOTHING / count;
#else
  return y;
#endif
}

// What a row counts for in the loss: its weight, where rows have some, over the samples of the batch.
float rowShare(int row) {
#ifdef ROW_WEIGHTS
  return R_fetch(R_layer(row), R_base(row), 0).x * uInverseRows;
#else
  return uInverseRows;
#endif
}

#ifdef WEIGHTED
// Of the classes of a column texel, or of the share of 1 in the targets of its outputs.
vec4 classWeights(int n) { return K_fetch(0, K_group(0), n); }
#endif
