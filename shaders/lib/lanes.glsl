// lanes: 4 channels that start in lane LANE of one texel and end in the next.
vec4 across(vec4 low, vec4 high) {
#if LANE == 0
  return low;
#elif LANE == 1
  return vec4(low.yzw, high.x);
#elif LANE == 2
  return vec4(low.zw, high.xy);
#else
  return vec4(low.w, high.xyz);
#endif
}
