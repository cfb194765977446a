// share: which lines a fragment sums where SPLITS fragments share a long sum: from the first up to, not including, the last.
ivec2 shareOf(int lines, int split) {
  // Not lines * split / SPLITS: of long batches that product is more than an int holds.
  int share = (lines + SPLITS - 1) / SPLITS;
  int first = min(split * share, lines);
  return ivec2(first, min(first + share, lines));
}
