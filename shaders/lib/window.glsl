// window: where a sliding window stands. INPUT, OUTPUT (height, width), WINDOW, STRIDE, DILATION, PADDING (before) come as defines.
// Windows stand at OUTPUT's places and slide over INPUT.

// The input pixel under the window's first tap, for an output pixel; may lie outside.
ivec2 windowCorner(int pixel) { return ivec2(pixel / OUTPUT.y, pixel % OUTPUT.y) * STRIDE - PADDING; }

// The output pixel whose window meets an input pixel with this tap, or one with a negative coordinate if there is none.
ivec2 windowOf(ivec2 inputPixel, ivec2 tap) {
  ivec2 offset = inputPixel + PADDING - tap * DILATION;
  ivec2 at = offset / STRIDE;
  bool stands = all(greaterThanEqual(offset, ivec2(0))) && at * STRIDE == offset && all(lessThan(at, OUTPUT));
  return stands ? at : ivec2(-1);
}
