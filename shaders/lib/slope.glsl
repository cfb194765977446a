// slope: a gradient times the slope of the activation that made what it is the gradient of, where one rides along: G is its output, or its input.
#include "lib/activation.glsl"

#if GRAD_ACTIVATION == LINEAR
#define SLOPED(gradient, n, row) (gradient)
#else
#define SLOPED(gradient, n, row) activationGrad(gradient, G_fetch(G_layer(row), G_base(row), n))
#endif
