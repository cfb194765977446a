// gates: DZ = (DY @ V^T) * relu'(Y) of one column DY, as where relu' is 1 and the factors     in the place of: affine_grad_input
// DY [M,1]  V [N,1]  Y [M,N]  ->  G, F [M/8,N/4+2]   8 rows and 4 columns a fragment
// G: bit 4 i + c is that of row i and column c. F: column texel n has V's rows 4 n to 4 n + 3, the last two DY's 8 rows. All exact.
// Padding lanes and rows are 0, in Y and thus in G.
// Reference: browser_runtime/reference/dense.js

// relu' as tg_relu_grad has it: 1 also where Y is NaN.
#define GATE(i) { \
    int row = 8 * group + i; \
    uvec4 open = uvec4(notEqual(floatBitsToUint(Y_fetch(Y_layer(row), Y_base(row), n)) << 1, uvec4(0u))); \
    gates |= (open.x | open.y << 1 | open.z << 2 | open.w << 3) << (4 * i); }
#define V_OF(row) V_fetch(V_layer(row), V_base(row), 0).x
#define DY_OF(row) DY_fetch(DY_layer(row), DY_base(row), 0).x

void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, n = place.y;
  uint gates = 0u;
  vec4 factors;
  if (n < Y_TEXELS_PER_ROW) {
    GATE(0) GATE(1) GATE(2) GATE(3) GATE(4) GATE(5) GATE(6) GATE(7)
    int row = 4 * n;
    factors = vec4(V_OF(row), V_OF(row + 1), V_OF(row + 2), V_OF(row + 3));
  } else {
    int row = 8 * group + 4 * (n - Y_TEXELS_PER_ROW);
    factors = vec4(DY_OF(row), DY_OF(row + 1), DY_OF(row + 2), DY_OF(row + 3));
  }
  oG[0] = uvec4(gates, 0u, 0u, 0u);
  STORE(oF[0], factors);
}
