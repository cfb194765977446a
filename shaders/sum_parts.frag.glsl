// sum_parts: adds the parts of a gradient that is read again     after: affine_grad_weights, conv2d_grad_weights, norm_grad_weights
// P [SPLITS,K,N]  ->  S [K,N]   ROWS weight rows and 4 columns a fragment
// In the order of the parts, f32; error <= SPLITS * 2^-24 * sum|p|
// Padding is 0 because P's is.
// Reference: browser_runtime/reference/conv2d.js

void main() {
  ivec2 place = fragmentPlace();
  vec4 total[ROWS];
#define CLEAR(i) total[i] = vec4(0.);
  EACH_ROW(CLEAR)
  for (int s = 0; s < SPLITS; s++) {
#define ADD(i) total[i] += P_fetch(P_layer(i), P_base(place.x * ROWS + i + s * DW_SPLIT_ROWS), place.y);
    EACH_ROW(ADD)
  }
#define OUT(i) STORE(oS[i], total[i]);
  EACH_ROW(OUT)
}
