// square_sums: adds the squares of a stored gradient to the sums of those before     then: grad_norm
// DW [K,N], BEFORE [sums,4] where there is one  ->  S [sums,4], lane by lane   a row a fragment: the squares of TEXELS texels, wherever they lie
// Accumulates in blocks of 64, f32; error <= (64 + TEXELS/64 + parameters) * 2^-24 of a sum of squares, which are never negative
// A square beyond float32 is infinite, below 1e-38 zero, as in PyTorch's float32. Padding is 0 and adds nothing.
// Reference: browser_runtime/reference/optimizers.js

void main() {
  int part = fragmentPlace().x;
  int first = part * TEXELS, last = min(first + TEXELS, ALL_TEXELS);
  vec4 total = vec4(0.);
  for (int start = first; start < last; start += BLOCK) {
    vec4 block = vec4(0.);
    int end = min(start + BLOCK, last);
    for (int t = start; t < end; t++) {
      int row = t / DW_TEXELS_PER_ROW;
      vec4 g = DW_fetch(DW_layer(row), DW_base(row), t % DW_TEXELS_PER_ROW);
      block += g * g;
    }
    total += block;
  }
#ifdef WITH_BEFORE
  total += BEFORE_fetch(0, BEFORE_base(part), 0);
#endif
  STORE(oS[0], total);
}
