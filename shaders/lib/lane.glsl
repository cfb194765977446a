// lane: one lane of a vector by a variable. By selects: a vector or an array that a variable indexes stays in memory, which a software renderer
// reads and writes pixel by pixel, in code that takes it longer to compile than the rest of a loss.
float laneOf(vec4 v, int lane) { return lane < 2 ? (lane == 0 ? v.x : v.y) : (lane == 2 ? v.z : v.w); }
vec4 withLane(vec4 v, int lane, float value) { return mix(v, vec4(value), equal(ivec4(0, 1, 2, 3), ivec4(lane))); }
