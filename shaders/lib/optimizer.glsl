// optimizer: one update of a texel of a parameter and its states, from its gradient. OPTIMIZER is one of the numbers below.
// The texel is that of the fragment: row group `group`, column texel `n`.
// Formulas: browser_runtime/reference/optimizers.js, which are PyTorch's. Reads W and the states, writes oW and the states.
// CLIP_VALUE, CLIP_NORM (with FACTOR, of grad_norm), PENALTY and DECAY say what else is done; RATE_SCALE is the layer's multiplier.
#define SGD 1
#define MOMENTUM 2
#define NESTEROV 3
#define ADAM 4
#define RMSPROP 5
#define RMSPROP_MOMENTUM 6
#define ADAGRAD 7
#define ADADELTA 8
#define LION 9

// The scalars of a step, as browser_runtime/nn/optimizers.js writes them.
#ifdef RATE_SCALE
#define uRate (uOptimizer[0].x * RATE_SCALE)
#define uDecay (uOptimizer[1].y * RATE_SCALE)
#else
#define uRate uOptimizer[0].x
#define uDecay uOptimizer[1].y
#endif
#define uL1 uOptimizer[1].z
#define uL2 uOptimizer[1].w
#define uClipValue uOptimizer[2].x

// The gradient as the rule takes it: limited, with the slope of the penalties. Not max and min: they would hide NaN.
vec4 limitedGradient(vec4 gradient, vec4 weight, bool penalised) {
#ifdef CLIP_VALUE
  gradient = mix(gradient, vec4(uClipValue), greaterThan(gradient, vec4(uClipValue)));
  gradient = mix(gradient, vec4(-uClipValue), lessThan(gradient, vec4(-uClipValue)));
#endif
#ifdef CLIP_NORM
  gradient *= FACTOR_fetch(0, FACTOR_group(0), 0).x;
#endif
#ifdef PENALTY
  if (penalised) gradient += uL2 * weight + uL1 * sign(weight);
#endif
  return gradient;
}

vec4 decayed(vec4 weight, bool penalised) {
#ifdef DECAY
  if (penalised) weight -= uDecay * weight;
#endif
  return weight;
}

// RULE(i) makes `change` of `gradient`, and stores the states.
#if OPTIMIZER == SGD
#define RULE(i) change = uRate * gradient;

#elif OPTIMIZER == MOMENTUM || OPTIMIZER == NESTEROV
#define uMomentum uOptimizer[0].y
#if OPTIMIZER == NESTEROV
#define DIRECTION (gradient + uMomentum * velocity)
#else
#define DIRECTION velocity
#endif
#define RULE(i) { \
  vec4 velocity = uMomentum * VELOCITY_fetch(i, VELOCITY_group(group), n) + gradient; \
  STORE(oVELOCITY[i], velocity); \
  change = uRate * DIRECTION; }

#elif OPTIMIZER == ADAM
// uRate is divided by 1 - beta1^t. m + (1 - beta1) (g - m), as torch's lerp.
#define uOneMinusBeta1 uOptimizer[0].y
#define uOneMinusBeta2 uOptimizer[0].z
#define uCorrection uOptimizer[0].w  // 1 / sqrt(1 - beta2^t)
#define uEps uOptimizer[1].x
#define RULE(i) { \
  vec4 m = M_fetch(i, M_group(group), n), v = V_fetch(i, V_group(group), n); \
  m += uOneMinusBeta1 * (gradient - m); \
  v += uOneMinusBeta2 * (gradient * gradient - v); \
  STORE(oM[i], m); \
  STORE(oV[i], v); \
  change = uRate * (m / (sqrt(v) * uCorrection + uEps)); }

#elif OPTIMIZER == RMSPROP || OPTIMIZER == RMSPROP_MOMENTUM
#define uOneMinusAlpha uOptimizer[0].y
#define uEps uOptimizer[0].z
#define uMomentum uOptimizer[0].w
#if OPTIMIZER == RMSPROP
#define FOLLOW(i)
#else
#define FOLLOW(i) step = uMomentum * VELOCITY_fetch(i, VELOCITY_group(group), n) + step; STORE(oVELOCITY[i], step);
#endif
#define RULE(i) { \
  vec4 v = V_fetch(i, V_group(group), n); \
  v += uOneMinusAlpha * (gradient * gradient - v); \
  STORE(oV[i], v); \
  vec4 step = gradient / (sqrt(v) + uEps); \
  FOLLOW(i) \
  change = uRate * step; }

#elif OPTIMIZER == ADAGRAD
#define uEps uOptimizer[0].y
#define RULE(i) { \
  vec4 sum = SUM_fetch(i, SUM_group(group), n) + gradient * gradient; \
  STORE(oSUM[i], sum); \
  change = uRate * (gradient / (sqrt(sum) + uEps)); }

#elif OPTIMIZER == ADADELTA
#define uOneMinusRho uOptimizer[0].y
#define uEps uOptimizer[0].z
#define RULE(i) { \
  vec4 v = V_fetch(i, V_group(group), n), delta = DELTA_fetch(i, DELTA_group(group), n); \
  v += uOneMinusRho * (gradient * gradient - v); \
  vec4 step = sqrt(delta + uEps) / sqrt(v + uEps) * gradient; \
  delta += uOneMinusRho * (step * step - delta); \
  STORE(oV[i], v); \
  STORE(oDELTA[i], delta); \
  change = uRate * step; }

#elif OPTIMIZER == LION
#define uOneMinusBeta1 uOptimizer[0].y
#define uOneMinusBeta2 uOptimizer[0].z
// The sign of what is neither above nor below 0 is itself: 0, or NaN, which the built-in sign may hide.
vec4 signs(vec4 x) { return mix(mix(x, vec4(-1.), lessThan(x, vec4(0.))), vec4(1.), greaterThan(x, vec4(0.))); }
#define RULE(i) { \
  vec4 m = M_fetch(i, M_group(group), n), toward = gradient - m; \
  STORE(oM[i], m + uOneMinusBeta2 * toward); \
  change = uRate * signs(m + uOneMinusBeta1 * toward); }
#endif

// Penalties and decay leave biases alone. Padding stays 0: the gradient is made 0 there, and the weight and its states began so.
#define UPDATE(i, dw, row) { \
  bool penalised = group != BIAS_GROUP; \
  vec4 weight = W_fetch(i, W_group(group), n), change; \
  vec4 gradient = paddedWeight(limitedGradient(dw, weight, penalised), n, row); \
  RULE(i) \
  STORE(oW[i], decayed(weight, penalised) - change); }
