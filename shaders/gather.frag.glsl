// gather: copies rows of a data set into the order of an epoch, spread over the layers of a batch tensor
// S [n, C] the data set in one layer, ORDER [rows, 1] row numbers or -1  ->  E [rows, C]   ROWS rows and 4 columns a fragment
// Exact.
// Rows whose number is -1, which pad each batch, are written as 0.
// Reference: browser_runtime/reference/gather.js
void main() {
  ivec2 place = fragmentPlace();
  int group = place.x, c = place.y;
#define COPY(i) { \
    int row = ORDER_fetch(0, ORDER_base(group * ROWS + i), 0).x; \
    STORE(oE[i], row < 0 ? vec4(0.) : S_fetch(0, S_base(row), c)); }
  EACH_ROW(COPY)
}
