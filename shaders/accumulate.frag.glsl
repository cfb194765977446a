// accumulate: the gradient of a step's batches so far     after: what makes a gradient   then: update, grad_norm
// DW [K,N], SUM [K,N] of the batches before  ->  SUM [K,N]   ROWS weight rows and 4 columns a fragment
// One addition, f32; the first batch of a step does not look at what SUM held.
// Padding is 0 because DW's and SUM's is.
// Reference: browser_runtime/reference/optimizers.js
#define uKeep uOptimizer[2].z

void main() {
  ivec2 place = fragmentPlace();
  // Selects instead of multiplying: what a step left behind may be NaN.
#define OUT(i) { \
    vec4 before = SUM_fetch(i, SUM_group(place.x), place.y); \
    STORE(oSUM[i], DW_fetch(i, DW_group(place.x), place.y) + mix(vec4(0.), before, bvec4(uKeep > .5))); }
  EACH_ROW(OUT)
}
