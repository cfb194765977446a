// grad_norm: the norm of the whole gradient, and what limits it to uClipNorm     after: square_sums   then: update, reduce_rows
// S [SUMS,4]  ->  F [1,2]: (what to multiply with, norm), N [slots]: norm, for the telemetry   one fragment
// With CLIP_NORM PyTorch's clip_grad_norm_, min(1, uClipNorm / (norm + 1e-6)), else 1.
// Accumulates in blocks of 64, f32; error <= (64 + SUMS/64) / 2 * 2^-24, as that of a root is half that of its argument
// A norm of NaN gives NaN; an infinite one 0, and so NaN where the gradient is infinite.
// Reference: browser_runtime/reference/optimizers.js
#define uClipNorm uOptimizer[2].y

void main() {
  vec4 total = vec4(0.);
  for (int start = 0; start < SUMS; start += BLOCK) {
    vec4 block = vec4(0.);
    int end = min(start + BLOCK, SUMS);
    for (int row = start; row < end; row++) block += S_fetch(0, S_base(row), 0);
    total += block;
  }
  float norm = sqrt(dot(total, vec4(1.)));
  float factor = 1.;
#ifdef CLIP_NORM
  factor = uClipNorm / (norm + 1e-6);
  // Not min: it would hide NaN.
  if (factor > 1.) factor = 1.;
#endif
  STORE(oF[0], vec4(factor, norm, 0., 0.));
  STORE(oN[0], vec4(norm, 0., 0., 0.));
}
