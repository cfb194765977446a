// activation: act(x), and its gradient as a function of y = act(x). ACTIVATION and GRAD_ACTIVATION are one of the numbers below.
#include "lib/math.glsl"
#define LINEAR 0
#define RELU 1
#define SIGMOID 2
#define TANH 3

#ifdef ACTIVATION
vec4 activate(vec4 x) {
#if ACTIVATION == RELU
  return tg_relu(x);
#elif ACTIVATION == SIGMOID || ACTIVATION == TANH
  // A loop, so that the function is inlined once.
  for (int c = 0; c < 4; c++) {
#if ACTIVATION == SIGMOID
    x[c] = tg_sigmoid(x[c]);
#else
    x[c] = tg_tanh(x[c]);
#endif
  }
  return x;
#else
  return x;
#endif
}
#endif

#ifdef GRAD_ACTIVATION
vec4 activationGrad(vec4 gradient, vec4 y) {
#if GRAD_ACTIVATION == RELU
  return tg_relu_grad(y, gradient);
#elif GRAD_ACTIVATION == SIGMOID
  return gradient * (y * (1. - y));
#elif GRAD_ACTIVATION == TANH
  return gradient * ((1. - y) * (1. + y));
#else
  return gradient;
#endif
}
#endif
