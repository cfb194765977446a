// moments: mean and sum of squared deviations of 4 channels of X over spots first ... last - 1, in two passes.
#include "lib/spots.glsl"

#ifdef X_COLUMNS
// Of no element, mean and squares are 0.
void momentsOf(int first, int last, int c, out vec4 mean, out vec4 squares) {
  float count = float(max(1, elementsBefore(last) - elementsBefore(first)));
  vec4 total = vec4(0.);
#define ADD_VALUE(row) block += X_fetch(X_layer(row), X_base(row), n);
  EACH_SPOT(first, last, ADD_VALUE)
  mean = total / count;
  total = vec4(0.);
#define ADD_SQUARE(row) { vec4 d = X_fetch(X_layer(row), X_base(row), n) - mean; d = (row) < uRows ? d : vec4(0.); block += d * d; }
  EACH_SPOT(first, last, ADD_SQUARE)
  squares = total;
}
#endif
