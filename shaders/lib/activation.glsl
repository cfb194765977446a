// activation: act(x), and its gradient as a function of y = act(x), or of x where nn/activations.js says gradFrom: "input".
// ACTIVATION and GRAD_ACTIVATION are one of the numbers below.
#include "lib/curves.glsl"
#define LINEAR 0
#define RELU 1
#define LEAKY_RELU 2
#define ELU 3
#define GELU 4
#define SILU 5
#define SIGMOID 6
#define TANH 7
#define SOFTPLUS 8
#define HARD_SIGMOID 9
#define HARD_SWISH 10

#ifdef ACTIVATION
#if ACTIVATION == LEAKY_RELU
#define CURVE tg_leaky_relu
#elif ACTIVATION == ELU
#define CURVE tg_elu
#elif ACTIVATION == GELU
#define CURVE tg_gelu
#elif ACTIVATION == SILU
#define CURVE tg_silu
#elif ACTIVATION == SIGMOID
#define CURVE tg_sigmoid
#elif ACTIVATION == TANH
#define CURVE tg_tanh
#elif ACTIVATION == SOFTPLUS
#define CURVE tg_softplus
#elif ACTIVATION == HARD_SIGMOID
#define CURVE tg_hard_sigmoid
#elif ACTIVATION == HARD_SWISH
#define CURVE tg_hard_swish
#endif

vec4 activate(vec4 x) {
#if ACTIVATION == RELU
  return tg_relu(x);
#elif ACTIVATION == LINEAR
  return x;
#else
  // A loop, so that the function is inlined once; each turn takes the first lane and puts what comes of it behind the last one.
  for (int c = 0; c < 4; c++) x = vec4(x.yzw, CURVE(x.x));
  return x;
#endif
}
#endif

#ifdef GRAD_ACTIVATION
#if GRAD_ACTIVATION != LINEAR && GRAD_ACTIVATION != RELU && GRAD_ACTIVATION != SIGMOID && GRAD_ACTIVATION != TANH
#define BY_ELEMENT
// Of one element: `of` is the output or the input.
float activationGrad(float gradient, float of) {
#if GRAD_ACTIVATION == LEAKY_RELU
  return tg_below(of, 0u) || of == 0. ? TG_LEAKY_SLOPE * gradient : gradient;
#elif GRAD_ACTIVATION == ELU
  return tg_below(of, 0u) ? gradient * (of + 1.) : gradient;
#elif GRAD_ACTIVATION == GELU
  return gradient * tg_gelu_slope(of);
#elif GRAD_ACTIVATION == SILU
  return gradient * tg_silu_slope(of);
#elif GRAD_ACTIVATION == SOFTPLUS
  return gradient * -tg_expm1(-of);
#elif GRAD_ACTIVATION == HARD_SIGMOID
  // Closed at both ends, whatever the gradient is.
  return of == 0. || of == 1. ? 0. : gradient * TG_SIXTH;
#else
  float slope = tg_hard_swish_slope(of);
  return slope == 0. ? 0. : gradient * slope;
#endif
}
#endif

vec4 activationGrad(vec4 gradient, vec4 of) {
#if GRAD_ACTIVATION == RELU
  return tg_relu_grad(of, gradient);
#elif GRAD_ACTIVATION == SIGMOID
  return gradient * (of * (1. - of));
#elif GRAD_ACTIVATION == TANH
  return gradient * ((1. - of) * (1. + of));
#elif defined(BY_ELEMENT)
  for (int c = 0; c < 4; c++) {
    gradient = vec4(gradient.yzw, activationGrad(gradient.x, of.x));
    of = of.yzwx;
  }
  return gradient;
#else
  return gradient;
#endif
}
#endif
