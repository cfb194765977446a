// gates: what gates.frag.glsl made of a gradient DZ. A line is a group of 8 rows.
uint gatesAt(int line, int n) { return G_fetch(0, G_base(line), n).x; }
// The weights V of 4 columns.
vec4 columnFactors(int n) { return F_fetch(0, F_base(0), n); }
// The rows of DY: the first four of a group (part 0), or the others (1).
vec4 rowFactors(int line, int part) { return F_fetch(0, F_base(line), DZ_TEXELS_PER_ROW + part); }
// A sum takes a value where a gate is open. A branch, which becomes a predicate: half the instructions of a product with 0 or 1.
#define WHERE_OPEN(gates, row, column, sum, value) if (((gates) & (1u << (4 * (row) + (column)))) != 0u) sum += value;
