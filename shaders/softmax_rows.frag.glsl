// softmax_rows: one fragment a row: its loss, its accuracy, and what softmax_grad needs     then: softmax_grad
// Z [M,N] logits, T [M,N] probabilities or class numbers [M,1]  ->  L, C (row losses and accuracies), S [M,4]: top, rest, sum y, 0
// loss = sum_n y_n (logsumexp(z) - z_n); sums over N in blocks of 256, f32
// Rows past the batch are written as 0.
// Reference: browser_runtime/reference/losses.js
#include "lib/softmax.glsl"

void main() {
  int row = fragmentPlace().x;
  Statistics s = Statistics(0., 0., 0., 0., 0.);
  if (row < uRows) s = rowStatistics(row);
#ifdef WITH_GRAD
  STORE(oS[0], vec4(s.top, s.rest, s.weight, 0.));
#endif
  STORE(oL[0], vec4(s.loss * rowShare(row), 0., 0., 0.));
#ifdef WITH_ACCURACY
  STORE(oC[0], vec4(s.correct, 0., 0., 0.));
#endif
}
