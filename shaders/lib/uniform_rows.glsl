// uniform_rows: products of the ROWS rows of a draw's row group, which lie in a uniform block, with weights. A draw sees one row group, so its fragments all
// load the same address. TEXELS column texels are taken at once, and the weights of all are fetched before the first product.
// The kernel defines WEIGHTS(j), the four vectors that column texel first + j is multiplied by, and ADD_PRODUCT(sum, x, w), how.

struct ColumnTexel { vec4 rows[ROWS]; };
// One element for each column texel: an index that varies is clamped once, the rows are constant offsets.
layout(std140) uniform Rows { ColumnTexel uColumns[UNIFORM_COLUMNS]; };

#define ADD(i) { vec4 x = uColumns[column].rows[i]; ADD_PRODUCT(part[i], x, w) }
#define FETCH(j) weights[j] = WEIGHTS(j);
#define MULTIPLY(j) { int column = first + j; mat4 w = weights[j]; EACH_ROW(ADD) }
#define ADD_PRODUCTS(k) int first = k; mat4 weights[TEXELS]; EACH_TEXEL(FETCH) EACH_TEXEL(MULTIPLY)
