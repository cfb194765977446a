// math: elementary functions within 4 ULP of the true value over all of float32, where the built-ins err by up to 100%.
//
// Only + - * /, comparisons, floor, bit casts and integers are used. Written for compilers that may contract a * b + c and
// that may rewrite (a + b) - a as b: no result depends on a rounding error that such rewriting would remove.
// NaN in gives NaN out, overflow gives infinity, and denormal results may be flushed to zero.
// Where NaN must survive, comparisons are made on the bits: Mesa compiles `x < c ? c : x` to max(x, c), which drops it.
// The coefficients are printed by scripts/derive_math.py; docs/numerics.md has the derivations and the measured errors.

const uint TG_SIGN_BIT = 0x80000000u;
const uint TG_INF_BITS = 0x7f800000u;
const uint TG_NAN_BITS = 0x7fc00000u;

const uint TG_4_BITS = 0x40800000u;
const uint TG_88_BITS = 0x42b00000u;
const uint TG_89_BITS = 0x42b20000u;

const float TG_LOG2_E = 1.44269504;
const float TG_LN2_HI = 0.693145752;    // 16 significant bits: n * TG_LN2_HI is exact for |n| <= 128
const float TG_LN2_LO = 1.42860677e-6;  // ln 2 - TG_LN2_HI

// Built from bits: a literal 1. / 0. is garbage on some drivers.
float tg_nan() { return uintBitsToFloat(TG_NAN_BITS); }
float tg_inf() { return uintBitsToFloat(TG_INF_BITS); }

// By bits: isnan and x != x are folded to false by some compilers.
bool tg_isnan(float x) { return (floatBitsToUint(x) & ~TG_SIGN_BIT) > TG_INF_BITS; }
bool tg_isinf(float x) { return (floatBitsToUint(x) & ~TG_SIGN_BIT) == TG_INF_BITS; }
bool tg_isfinite(float x) { return (floatBitsToUint(x) & ~TG_SIGN_BIT) < TG_INF_BITS; }

// x > limit and x < -limit by bits, false for NaN; limit is the bits of a float >= 0
bool tg_above(float x, uint limit) { return floatBitsToUint(x) - limit - 1u < TG_INF_BITS - limit; }
bool tg_below(float x, uint limit) { return floatBitsToUint(x) - (limit | TG_SIGN_BIT) - 1u < TG_INF_BITS - limit; }

float tg_relu(float x) { return tg_below(x, 0u) ? 0. : x; }
// y = relu(x); dy passes where y > 0 or y is NaN
float tg_relu_grad(float y, float dy) { return (floatBitsToUint(y) << 1) == 0u ? 0. : dy; }

// 2^n for a whole n from -127, which gives 0, to 127. Any n that is NaN gives some float.
float tg_exp2i(float n) { return uintBitsToFloat(uint(int(n) + 127) << 23); }

// exp(r) - 1 for |r| <= ln(2) / 2
float tg_expm1_reduced(float r) {
  float p = 0.0013940658;
  p = p * r + 0.00836639572;
  p = p * r + 0.0416664034;
  p = p * r + 0.16666545;
  p = p * r + 0.5;
  return r + r * r * p;
}

// exp(x) = 2^n exp(r) with n whole, |r| <= ln(2) / 2
float tg_exp(float x) {
  x = tg_below(x, TG_88_BITS) ? -88. : x;  // n >= -127
  x = tg_above(x, TG_89_BITS) ? 89. : x;   // n <= 128
  float n = floor(x * TG_LOG2_E + 0.5);
  float r = (x - n * TG_LN2_HI) - n * TG_LN2_LO;
  float p = 1. + tg_expm1_reduced(r);
  bool top = n > 127.;  // 2^128 is no float; doubling p and not the product, whose factors Mesa reorders: 2 * 2^127
  return (top ? p + p : p) * tg_exp2i(top ? 127. : n);
}

// expm1(x) = 2^n expm1(r) + (2^n - 1), the same n and r; exact where n = 0
float tg_expm1(float x) {
  x = tg_below(x, TG_88_BITS) ? -88. : x;
  x = tg_above(x, TG_89_BITS) ? 89. : x;
  float n = floor(x * TG_LOG2_E + 0.5);
  float r = (x - n * TG_LN2_HI) - n * TG_LN2_LO;
  bool top = n > 127.;
  float s = tg_exp2i(top ? 127. : n);
  float y = s * tg_expm1_reduced(r) + (s - 1.);
  return top ? y + y : y;
}

// k ln 2 + log(1 + f) for sqrt(1/2) <= 1 + f <= sqrt(2): with s = f / (2 + f), log(1 + f) = 2 atanh(s) = 2 s + s R(s^2),
// rearranged so that the exact f leads and the rounding errors of s count little
float tg_log_reduced(float k, float f) {
  float s = f / (2. + f);
  float z = s * s;
  float p = 0.298721373;
  p = p * z + 0.399775535;
  p = p * z + 0.666667759;
  float h = 0.5 * f * f;
  return k * TG_LN2_HI + (f - (h - (s * (h + z * p) + k * TG_LN2_LO)));
}

const uint TG_SQRT_HALF_BITS = 0x3f3504f3u;

// The bits of x = 2^k m with sqrt(1/2) <= m < sqrt(2), counted from those of sqrt(1/2): k in the high 9 bits, m in the rest
int tg_split(uint bits) { return int(bits - TG_SQRT_HALF_BITS); }
float tg_split_mantissa(int split) { return uintBitsToFloat(uint(split & 0x7fffff) + TG_SQRT_HALF_BITS); }

float tg_log(float x) {
  uint bits = floatBitsToUint(x);
  bool denormal = bits < 0x00800000u;  // a whole number of 2^-149, normalised by the conversion to float
  int split = tg_split(denormal ? floatBitsToUint(float(bits)) : bits);
  float k = float(split >> 23) - (denormal ? 149. : 0.);
  float y = tg_log_reduced(k, tg_split_mantissa(split) - 1.);
  uint special = (bits << 1) == 0u ? (TG_SIGN_BIT | TG_INF_BITS) : (bits == TG_INF_BITS ? TG_INF_BITS : TG_NAN_BITS);
  return bits - 1u < TG_INF_BITS - 1u ? y : uintBitsToFloat(special);  // positive and finite, or 0, inf, NaN, below 0
}

// 1 + x = 2^k (1 + f), and f = 2^-k x + (2^-k - 1) has no rounding error that matters, unlike (1 + x) - 1
float tg_log1p(float x) {
  uint bits = floatBitsToUint(1. + x);
  int split = tg_split(bits);
  int k = split >> 23;
  float s = uintBitsToFloat(uint(127 - k) << 23);
  float f = k > 24 ? tg_split_mantissa(split) - 1. : x * s + (s - 1.);  // 2^-k: a denormal at the end; x = 1 + x before
  float y = tg_log_reduced(float(k), f);
  uint special = (bits << 1) == 0u ? (TG_SIGN_BIT | TG_INF_BITS) : (bits == TG_INF_BITS ? TG_INF_BITS : TG_NAN_BITS);
  return bits - 1u < TG_INF_BITS - 1u ? y : uintBitsToFloat(special);
}

// log(1 + t) for 0 <= t <= 1, as tg_log_reduced with k = 0 and a longer polynomial: no reduction
float tg_log1p_unit(float t) {
  float s = t / (2. + t);
  float z = s * s;
  float p = 0.280267417;
  p = p * z + 0.279985964;
  p = p * z + 0.400217384;
  p = p * z + 0.666664124;
  float h = 0.5 * t * t;
  return t - (h - s * (h + z * p));
}

// log(1 + exp(x)) without overflow: exp(x) exceeds float32 above 88.7
float tg_softplus(float x) { return tg_relu(x) + tg_log1p_unit(tg_exp(-abs(x))); }

// 1 / (1 + exp(-x)) without overflow, and with full relative precision for x < 0
float tg_sigmoid(float x) {
  float e = tg_exp(-abs(x));
  return (x < 0. ? e : 1.) / (1. + e);
}

// tanh(|x|) = -expm1(-2|x|) / (2 + expm1(-2|x|))
float tg_tanh(float x) {
  float e = tg_expm1(-2. * abs(x));
  float y = e / (2. + e);
  return x < 0. ? y : -y;
}

// x P(x^2) below 1, 1 - exp(-|x| Q(|x|)) above, sign(x) from 4 on
float tg_erf(float x) {
  float a = abs(x);
  a = tg_above(a, TG_4_BITS) ? 4. : a;
  float z = a * a;
  float p = -0.000556318846;
  p = p * z + 0.00490007829;
  p = p * z - 0.0266955253;
  p = p * z + 0.112795904;
  p = p * z - 0.376122475;
  p = p * z + 1.12837911;
  float q = 0.000206237426;
  q = q * a - 0.00315107196;
  q = q * a + 0.0226846673;
  q = q * a - 0.104940243;
  q = q * a - 0.635964096;
  q = q * a - 1.12844098;
  float y = a < 1. ? a * p : 1. - tg_exp(a * q);
  return x < 0. ? -y : y;
}

#define TG_VEC4(f) vec4 f(vec4 x) { return vec4(f(x.x), f(x.y), f(x.z), f(x.w)); }
#define TG_BVEC4(f) bvec4 f(vec4 x) { return bvec4(f(x.x), f(x.y), f(x.z), f(x.w)); }
TG_BVEC4(tg_isnan)
TG_BVEC4(tg_isinf)
TG_BVEC4(tg_isfinite)
// In vectors, a quarter of the instructions for a compiler that optimizes before it makes scalars of them: these stand in inner loops.
vec4 tg_relu(vec4 x) { return mix(x, vec4(0.), lessThan(floatBitsToUint(x) - (TG_SIGN_BIT + 1u), uvec4(TG_INF_BITS))); }
vec4 tg_relu_grad(vec4 y, vec4 dy) { return mix(dy, vec4(0.), equal(floatBitsToUint(y) << 1, uvec4(0u))); }
TG_VEC4(tg_exp)
TG_VEC4(tg_expm1)
TG_VEC4(tg_log)
TG_VEC4(tg_log1p)
TG_VEC4(tg_softplus)
TG_VEC4(tg_sigmoid)
TG_VEC4(tg_tanh)
TG_VEC4(tg_erf)
