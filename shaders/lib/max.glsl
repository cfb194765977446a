// max: which of two values a maximum keeps. Not max(): it loses NaN on one side or the other.
#include "lib/math.glsl"

// v takes the place of top: larger, or the first NaN.
bvec4 wins(vec4 v, vec4 top) {
  bvec4 nan = tg_isnan(top);
  bvec4 larger = greaterThan(v, top), broken = tg_isnan(v);
  return bvec4(!nan.x && (larger.x || broken.x), !nan.y && (larger.y || broken.y), !nan.z && (larger.z || broken.z), !nan.w && (larger.w || broken.w));
}
