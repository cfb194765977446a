// grad_factor: what a gradient is multiplied with so that its norm is at most uClipNorm     after: square_sums   then: update
// S [SUMS,4]  ->  F [1,2]: min(1, uClipNorm / (norm + 1e-6)), norm   one fragment
// Accumulates in blocks of 64, f32; error <= (64 + SUMS/64) / 2 * 2^-24, as that of a root is half that of its argument
// PyTorch's clip_grad_norm_, its 1e-6 included. A norm of NaN gives NaN; an infinite one 0, and so NaN where the gradient is infinite.
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
  float factor = uClipNorm / (norm + 1e-6);
  // Not min: it would hide NaN.
  if (factor > 1.) factor = 1.;
  STORE(oF[0], vec4(factor, norm, 0., 0.));
}
