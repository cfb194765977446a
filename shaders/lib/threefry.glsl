// threefry: Threefry2x32-20, the words of browser_runtime/nn/random.js; a comparison of words decides, never a float.

// The two words of the block `counter` under `key`: key = seed mod 2^32, seed / 2^32; counter = i, stream * 2^24 + sub
uvec2 tg_threefry2x32(uvec2 key, uvec2 counter) {
  const uvec4 even = uvec4(13u, 15u, 26u, 6u), odd = uvec4(17u, 29u, 16u, 24u);
  uvec3 keys = uvec3(key, key.x ^ key.y ^ 0x1bd11bdau);
  uvec2 x = counter + key;
  for (uint group = 0u; group < 5u; group++) {
    uvec4 rotations = (group & 1u) == 0u ? even : odd;
    for (int round = 0; round < 4; round++) {
      x.x += x.y;
      x.y = ((x.y << rotations[round]) | (x.y >> (32u - rotations[round]))) ^ x.x;
    }
    keys = keys.yzx;
    x += uvec2(keys.x, keys.y + group + 1u);
  }
  return x;
}
