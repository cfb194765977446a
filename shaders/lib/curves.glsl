// curves: activation functions of one number, and the slopes that are computed from the input. Within 4 ULP but for gelu and slopes, see docs/numerics.md.
// Comparisons that must keep NaN are made on the bits, as in lib/math.glsl.
#include "lib/math.glsl"

const uint TG_3_BITS = 0x40400000u;
const uint TG_6_BITS = 0x40c00000u;
const float TG_LEAKY_SLOPE = 0.01;
const float TG_SIXTH = 0.166666672;
const float TG_THIRD = 0.333333343;
const float TG_SQRT_HALF = 0.707106769;
const float TG_INVERSE_SQRT_2PI = 0.398942292;

float tg_leaky_relu(float x) { return tg_below(x, 0u) ? TG_LEAKY_SLOPE * x : x; }
float tg_elu(float x) { return tg_below(x, 0u) ? tg_expm1(x) : x; }
float tg_silu(float x) { return x * tg_sigmoid(x); }
// (x + 3) / 6 between 0 and 1: x / 6 + 1/2 would lose the low bits of x near -3
float tg_hard_sigmoid(float x) {
  float z = x + 3.;
  z = tg_below(z, 0u) ? 0. : z;
  return tg_above(z, TG_6_BITS) ? 1. : z * TG_SIXTH;
}
float tg_hard_swish(float x) { return x * tg_hard_sigmoid(x); }
// The share of a normal distribution below x. Its absolute error is small; below -1 the relative one is not, as 1 + erf cancels.
float tg_normal_cdf(float x) { return 0.5 + 0.5 * tg_erf(x * TG_SQRT_HALF); }
float tg_gelu(float x) { return x * tg_normal_cdf(x); }

float tg_silu_slope(float x) {
  float s = tg_sigmoid(x);
  return s * (1. + x * tg_sigmoid(-x));
}
float tg_gelu_slope(float x) { return tg_normal_cdf(x) + x * (TG_INVERSE_SQRT_2PI * tg_exp(-0.5 * x * x)); }
float tg_hard_swish_slope(float x) {
  float slope = x * TG_THIRD + 0.5;
  slope = tg_below(x, TG_3_BITS) ? 0. : slope;
  return tg_above(x, TG_3_BITS) ? 1. : slope;
}
