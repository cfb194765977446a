// optimizer: one update of a texel of a parameter and its states, from its gradient. OPTIMIZER is one of the numbers below.
// The texel is that of the fragment: row group `group`, column texel `n`.
// Formulas: browser_runtime/reference/optimizers.js, which are PyTorch's. Reads W and the states, writes oW and the states.
#define SGD 1
#define MOMENTUM 2
#define ADAM 3

#if OPTIMIZER == SGD
#define UPDATE(i, g) STORE(oW[i], W_fetch(i, W_group(group), n) - uRate * (g));
#elif OPTIMIZER == MOMENTUM
#define UPDATE(i, g) { \
  vec4 velocity = uOptimizer.x * VELOCITY_fetch(i, VELOCITY_group(group), n) + (g); \
  STORE(oVELOCITY[i], velocity); \
  STORE(oW[i], W_fetch(i, W_group(group), n) - uRate * velocity); }
#elif OPTIMIZER == ADAM
// m + (1 - beta1) (g - m), as torch's lerp.
#define UPDATE(i, g) { \
  vec4 gradient = (g), m = M_fetch(i, M_group(group), n), v = V_fetch(i, V_group(group), n); \
  m += uOptimizer.x * (gradient - m); \
  v += uOptimizer.y * (gradient * gradient - v); \
  STORE(oM[i], m); \
  STORE(oV[i], v); \
  STORE(oW[i], W_fetch(i, W_group(group), n) - uRate * (m / (sqrt(v) * uOptimizer.z + uOptimizer.w))); }
#endif
