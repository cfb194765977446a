// taps: which line a tap of a convolution reads for a line that it makes, and which line it makes of one that it read; -1 if there is none.
// Rows and columns each by themselves, so that a row that does not exist is left out whole.
// A convolution reads what its windows slide over and makes a pixel of each window. A transposed one (TRANSPOSED) is its gradient
// with respect to the input: it reads a pixel for each window, and makes what they slide over.
#include "lib/window.glsl"

int inside(int at, int size) { return at >= 0 && at < size ? at : -1; }
int underRow(int window, int tap) { return inside(window * STRIDE.x - PADDING.x + tap * DILATION.x, INPUT.x); }
int underColumn(int window, int tap) { return inside(window * STRIDE.y - PADDING.y + tap * DILATION.y, INPUT.y); }
int overRow(int at, int tap) {
  int offset = at + PADDING.x - tap * DILATION.x;
  int window = offset / STRIDE.x;
  return offset >= 0 && window * STRIDE.x == offset && window < OUTPUT.x ? window : -1;
}
int overColumn(int at, int tap) {
  int offset = at + PADDING.y - tap * DILATION.y;
  int window = offset / STRIDE.y;
  return offset >= 0 && window * STRIDE.y == offset && window < OUTPUT.y ? window : -1;
}

#ifdef TRANSPOSED
#define READ OUTPUT
#define MADE INPUT
#define readRow overRow
#define readColumn overColumn
#define madeRow underRow
#define madeColumn underColumn
#else
#define READ INPUT
#define MADE OUTPUT
#define readRow underRow
#define readColumn underColumn
#define madeRow overRow
#define madeColumn overColumn
#endif

// What a fragment of ROWS samples sums over a window, kernel row by kernel row: from EACH_TAP(row, column, at) to END_EACH_TAP part[i] takes
// what a tap adds, for the pixel (y, x) that row() and column() find for `at`. Taps that find none are left out.
#define CLEAR_PART(i) part[i] = vec4(0.);
#define FLUSH_PART(i) total[i] += part[i];
#define EACH_TAP(row, column, at) \
  for (int ky = 0; ky < WINDOW.x; ky++) { \
    int y = row(at.x, ky); \
    if (y < 0) continue; \
    vec4 part[ROWS]; \
    EACH_ROW(CLEAR_PART) \
    for (int kx = 0; kx < WINDOW.y; kx++) { \
      int x = column(at.y, kx); \
      if (x < 0) continue; \
      int tap = ky * WINDOW.y + kx;
#define END_EACH_TAP } EACH_ROW(FLUSH_PART) }
