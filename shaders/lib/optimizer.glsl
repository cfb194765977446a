// optimizer: one update of a texel of a parameter and its states, from its gradient. OPTIMIZER is one of the numbers below.
// The texel is that of the fragment: row group `group`, column texel `n`.
// Formulas: browser_runtime/reference/optimizers.js, which are PyTorch's. Reads W and the states, writes oW and the states.
#define SGD 1
#define MOMENTUM 2
#define ADAM 3

// The scalars of a step, as browser_runtime/nn/optimizers.js writes them.
#define uRate uOptimizer[0].x
#if OPTIMIZER == MOMENTUM
#define uMomentum uOptimizer[0].y
#elif OPTIMIZER == ADAM
// uRate is divided by 1 - beta1^t.
#define uOneMinusBeta1 uOptimizer[0].y
#define uOneMinusBeta2 uOptimizer[0].z
#define uCorrection uOptimizer[0].w  // 1 / sqrt(1 - beta2^t)
#define uEps uOptimizer[1].x
#endif

#if OPTIMIZER == SGD
#define UPDATE(i, g) STORE(oW[i], W_fetch(i, W_group(group), n) - uRate * (g));
#elif OPTIMIZER == MOMENTUM
#define UPDATE(i, g) { \
  vec4 velocity = uMomentum * VELOCITY_fetch(i, VELOCITY_group(group), n) + (g); \
  STORE(oVELOCITY[i], velocity); \
  STORE(oW[i], W_fetch(i, W_group(group), n) - uRate * velocity); }
#elif OPTIMIZER == ADAM
// m + (1 - beta1) (g - m), as torch's lerp.
#define UPDATE(i, g) { \
  vec4 gradient = (g), m = M_fetch(i, M_group(group), n), v = V_fetch(i, V_group(group), n); \
  m += uOneMinusBeta1 * (gradient - m); \
  v += uOneMinusBeta2 * (gradient * gradient - v); \
  STORE(oM[i], m); \
  STORE(oV[i], v); \
  STORE(oW[i], W_fetch(i, W_group(group), n) - uRate * (m / (sqrt(v) * uCorrection + uEps))); }
#endif
