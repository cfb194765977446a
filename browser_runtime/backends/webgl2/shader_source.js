// Shader source: turns a kernel file into the text that the driver compiles. Pure text, no GL.
// `#include "lib/x.glsl"` brings each file once; what a kernel may know of its tensors is declared from their layouts.
import { EngineError } from "../../errors.js";
import { groupsOfPart } from "./layout.js";

/** @import { Layout, Numbers } from "./layout.js" */

/**
 * @typedef {object} Read a tensor that the kernel fetches from, under the name NAME: NAME_fetch, NAME_layer, NAME_base ...
 * @property {string} name
 * @property {string} [sampler] name of an earlier read of the same texture
 * @property {Layout} layout
 * @property {number} width @property {number} height of the texture
 * @property {{y: number, width: number}} [region] its first line there and how long its lines are, where it has not the whole texture
 * @property {boolean} [fed] its rows start at uFirstRow: it holds an epoch of batches, not one
 * @property {Numbers} [numbers] of its texels
 * @property {import("./layout.js").Lanes} [lanes] of a texel; a fetch gives 0 for those that it has not
 */

/**
 * A tensor that is not stored: a kernel reads it under NAME as any other, and it is computed from reads called NAME_X and NAME_W, or NAME_DY,
 * NAME_W and NAME_Y, whose rows are one texel.
 * @typedef {{name: string, layout: Layout, kind: "affine"|"affine_grad_input", relu: boolean}} ComputedRead
 */

/**
 * @typedef {object} KernelSource
 * @property {string} shader path below shaders/
 * @property {Record<string, string|number>} defines
 * @property {Read[]} reads
 * @property {ComputedRead[]} computed
 * @property {{name: string, layout: Layout, groups: number}} [uniform] what lies in a uniform block instead, of which kernels know no more than its sizes; each
 *   of so many row groups is a draw
 * @property {{name: string, targets: number, numbers?: Numbers}[]} writes render targets, in order: oNAME[0] ... oNAME[targets - 1]
 * @property {Layout} domain the fragment's position: group, column texel, and `layers` rows
 * @property {number} width of the render targets, or of their lines that are written @property {number} [y] the first of these
 */

/** @typedef {{format: "rgba32f"|"rgba32ui", fetch: "texture"|"texelFetch"}} Dialect */

/** @typedef {{file: string, line: number}} Origin where a line of the text came from */

/**
 * @param {KernelSource} kernel
 * @param {Record<string, string>} files shaders/ as path -> text
 * @param {Dialect} dialect
 * @returns {{text: string, origins: Origin[], bands: number}} the text, for each of its lines the file and line that it came from, and how many draws it takes
 */
export function kernelText(kernel, files, dialect) {
  const head = [
    "#version 300 es",
    "precision highp float;",
    "precision highp int;",
    "precision highp sampler2DArray;",
    "precision highp usampler2DArray;",
    "precision highp isampler2DArray;",
    ...Object.entries(kernel.defines).map(([name, value]) => `#define ${name} ${value}`),
    ...domainText(kernel),
    ...writesText(kernel.writes, dialect),
  ];
  /** @type {string[]} */
  const lines = [];
  /** @type {Origin[]} */
  const origins = [];
  const add = (/** @type {string} */ line, /** @type {Origin} */ origin) => {
    lines.push(line);
    origins.push(origin);
  };
  const generated = (/** @type {string} */ line) => add(line, { file: "(generated)", line: lines.length + 1 });
  head.forEach(generated);
  expand("lib/step.glsl", files, add, new Set(), []);
  kernel.reads.flatMap((read) => readText(read, dialect)).forEach(generated);
  uniformText(kernel).forEach(generated);
  const seen = new Set(["lib/step.glsl"]);
  if (kernel.computed.some(({ relu }) => relu)) expand("lib/math.glsl", files, add, seen, []);
  const layouts = new Map(kernel.reads.map(({ name, layout }) => [name, layout]));
  kernel.computed.flatMap((read) => computedText(read, layouts)).forEach(generated);
  expand(kernel.shader, files, add, seen, []);
  return { text: lines.join("\n") + "\n", origins, bands: kernel.uniform?.groups ?? 1 };
}

/**
 * @param {string} path @param {Record<string, string>} files @param {(line: string, origin: Origin) => void} add
 * @param {Set<string>} seen @param {string[]} open files being included, to name a cycle
 */
function expand(path, files, add, seen, open) {
  if (open.includes(path)) throw new EngineError("shader_error", `#include cycle: ${[...open, path].join(" -> ")}`);
  if (seen.has(path)) return;
  seen.add(path);
  const text = files[path];
  if (text === undefined) throw new EngineError("shader_error", `no shader ${path}${open.length ? `, included by ${open[open.length - 1]}` : ""}`);
  text.split("\n").forEach((line, i) => {
    const include = line.match(/^\s*#include\s+"([^"]+)"/);
    if (include) expand(include[1], files, add, seen, [...open, path]);
    else add(line, { file: path, line: i + 1 });
  });
}

const log2 = (/** @type {number} */ n) => Math.round(Math.log2(n));

/** Quotient and remainder of a number that is not negative: a software renderer divides integers one by one. @param {string} a @param {number} b */
const divided = (a, b) => (b === 2 ** log2(b) ? [`${a} >> ${log2(b)}`, `${a} & ${b - 1}`] : [`${a} / ${b}`, `${a} % ${b}`]);

/** ROWS rows and 4 columns a fragment; where the fragment stands: its row group and column texel. @param {KernelSource} kernel */
function domainText({ domain, width, y = 0 }) {
  const rows = Array.from({ length: domain.layers }, (_, i) => `F(${i})`);
  const line = y === 0 ? "int(gl_FragCoord.y)" : `(int(gl_FragCoord.y) - ${y})`;
  const place = domain.folded
    ? // Fragments past the last texel, which pad the texture's last line, repeat it: nobody reads what they write.
      `int t = min((${line} << ${log2(width)}) | int(gl_FragCoord.x), ${domain.texels - 1}); ` +
      `return ivec2(${divided("t", domain.texelsPerRow).join(", ")});`
    : domain.lines === 1
      ? `return ivec2(${line}, int(gl_FragCoord.x));`
      : // Those past a row's last texel repeat that one.
        `int x = int(gl_FragCoord.x), y = ${line}; return ivec2(y >> 1, min((x >> 1 << 2) | ((y & 1) << 1) | (x & 1), ${domain.texelsPerRow - 1}));`;
  return [
    `#define ROWS ${domain.layers}`,
    `#define EACH_ROW(F) ${rows.join(" ")}`,
    `#define ROW_OF(group, i) (${domain.spread ? "((group) >> 2 << 5) + (((group) & 3) << 2) + ((i) >> 2 << 4) + ((i) & 3)" : "(group) * ROWS + (i)"})`,
    `#define TEXELS_PER_ROW ${domain.texelsPerRow}`,
    `#define COLUMNS ${domain.columns}`,
    `#define CHANNELS ${domain.channels}`,
    `#define TEXELS_PER_PIXEL ${domain.texelsPerPixel}`,
    `#define BLOCK_ROWS ${domain.blockRows}`,
    `#define BLOCK_STRIDE ${domain.blockStride}`,
    `#define BLOCK_END ${(domain.rows / domain.blockRows) * domain.blockStride}`,
    `#define BIAS_ROW ${domain.biasRow}`,
    `#define BIAS_GROUP ${domain.biasRow < 0 ? -1 : domain.biasRow / domain.layers}`,
    `ivec2 fragmentPlace() { ${place} }`,
  ];
}

/** @param {KernelSource["writes"]} writes @param {Dialect} dialect */
function writesText(writes, { format }) {
  let location = 0;
  const lines = writes.map(({ name, targets, numbers = "float" }) => {
    const type = numbers === "uint" || format === "rgba32ui" ? "uvec4" : "vec4";
    const line = `layout(location = ${location}) out highp ${type} o${name}[${targets}];`;
    location += targets;
    return line;
  });
  // Without float render targets the bits of a float32 travel in unsigned integers, which WebGL2 can always render to.
  lines.push(`#define STORE(target, value) target = ${format === "rgba32ui" ? "floatBitsToUint(value)" : "(value)"}`);
  return lines;
}

/** What kernels may ask of the size of what they read. @param {string} name @param {Layout} layout */
const sizesText = (name, { layers, texelsPerRow, texelsPerPixel, groups, columns, biasRow }) => [
  `#define ${name}_LAYERS ${layers}`,
  `#define ${name}_TEXELS_PER_ROW ${texelsPerRow}`,
  `#define ${name}_TEXELS_PER_PIXEL ${texelsPerPixel}`,
  `#define ${name}_COLUMNS ${columns}`,
  `#define ${name}_GROUPS ${groups}`,
  `#define ${name}_BIAS_ROW ${biasRow}`,
];

/** The kernel has the block; UNIFORM_COLUMNS says that there is one. @param {KernelSource} kernel */
const uniformText = ({ uniform }) => (uniform ? [...sizesText(uniform.name, uniform.layout), `#define UNIFORM_COLUMNS ${uniform.layout.texelsPerRow}`] : []);

/**
 * NAME_fetch(layer, base, n): column texel n of a row that has the given layer and base, the sum of its parts. For loops, the same in three parts, so that each is
 * done once: NAME_row(row) and NAME_column(n) give a NAME_Row and a NAME_Column, and NAME_at(row, column) of two variables the texel;
 * NAME_rowAt(m, j) is row m + j where m is a multiple of 16.
 * @param {Read} read @param {Dialect} dialect @returns {string[]} */
function readText({ name, sampler: owner = name, layout, width, height, region = { y: 0, width }, fed, numbers = "float", lanes = 4 }, { format, fetch }) {
  const { folded, layers, lines, spread, texelsPerRow } = layout;
  const sampler = { float: format === "rgba32ui" ? "usampler2DArray" : "sampler2DArray", int: "isampler2DArray", uint: "usampler2DArray" }[numbers];
  const plain = lines === 1 ? "ivec2 at = ivec2(n, base);" : "ivec2 at = ivec2((n >> 2 << 1) | (n & 1), base + (n >> 1 & 1));";
  const at = folded ? `int t = base + n; ivec2 at = ivec2(t & ${region.width - 1}, t >> ${log2(region.width)});` : plain;
  // Texels, or lines, from a row group to the next one.
  const stride = folded ? texelsPerRow : lines;
  // Bases are counted from the texture's first texel or line, so that a region costs its fetches nothing.
  const origin = folded ? region.y * region.width : region.y;
  // Integer coordinates; `texture` is faster on some drivers, and a texel's centre is never near its border.
  const point =
    fetch === "texture"
      ? `texture(u${owner}, vec3((vec2(at) + .5) * vec2(${float(1 / width)}, ${float(1 / height)}), float(layer)))`
      : `texelFetch(u${owner}, ivec3(at, layer), 0)`;
  const texel = lanes === 1 ? `${point}.x` : point;
  const typed = numbers === "float" && format === "rgba32ui" ? `uintBitsToFloat(${texel})` : texel;
  const vector = { float: "vec4", int: "ivec4", uint: "uvec4" }[numbers];
  const value = lanes === 1 ? `${vector}(${typed}, 0, 0, 0)` : typed;
  const { parts = 1 } = layout;
  const part = Array.from({ length: parts }, (_, i) => `${name}_part(layer, base + ${i * groupsOfPart(layout) * stride}, n)`);
  return [
    ...(owner === name ? [`uniform ${sampler} u${name};`] : []),
    ...sizesText(name, layout),
    `#define ${name}_layer(row) (${spread ? "((row) & 3) | ((row) >> 2 & 4)" : `(row) & ${layers - 1}`})`,
    `#define ${name}_group(group) ((group)${stride === 1 ? "" : ` * ${stride}`}${origin === 0 ? "" : ` + ${origin}`})`,
    `#define ${name}_base(row) ${name}_group(${spread ? "((row) >> 5 << 2) | ((row) >> 2 & 3)" : `((row)${fed ? " + uFirstRow" : ""}) >> ${log2(layers)}`})`,
    `${vector} ${name}_${parts === 1 ? "fetch" : "part"}(int layer, int base, int n) { ${at} return ${value}; }`,
    ...(parts === 1 ? [] : [`${vector} ${name}_fetch(int layer, int base, int n) { return ${part.join(" + ")}; }`]),
    `#define ${name}_Row ivec2`,
    `#define ${name}_Column int`,
    `#define ${name}_row(row) ivec2(${name}_layer(row), ${name}_base(row))`,
    `#define ${name}_rowAt(m, j) ivec2(${name}_layer(j), ${name}_base(m) + ((j) >> ${log2(layers)}) * ${stride})`,
    `#define ${name}_column(n) (n)`,
    `#define ${name}_at(row, column) ${name}_fetch((row).x, (row).y, column)`,
  ];
}

/**
 * A row is what the sums run over, a column the weights that they take; NAME_sum is what comes before the relu.
 * @param {ComputedRead} read @param {Map<string, Layout>} layouts of what it is computed from @returns {string[]}
 */
function computedText({ name, layout, kind, relu }, layouts) {
  const row = (/** @type {string} */ of, /** @type {string} */ at) => `${name}_${of}_fetch(${name}_${of}_layer(${at}), ${name}_${of}_base(${at}), 0)`;
  const weights = (/** @type {string} */ at, /** @type {string} */ n) => `${name}_W_fetch(${name}_W_layer(${at}), ${name}_W_base(${at}), ${n})`;
  const w = /** @type {Layout} */ (layouts.get(`${name}_W`));
  const head = [...sizesText(name, layout), `#define ${name}_rowAt(m, j) ${name}_row((m) + (j))`];
  if (kind === "affine") {
    const terms = Array.from({ length: w.rows }, (_, i) => i);
    const bias = w.biasRow < 0 ? "vec4(0.)" : weights(`${w.biasRow}`, "n");
    // A chain that begins with the bias: an instruction for each product, where the compiler makes one of multiplication and addition.
    const sum = terms.reduce((part, i) => `((row).${"xyzw"[i]} * (column).w${i} + ${part})`, "(column).bias");
    return [
      ...head,
      `#define ${name}_Row vec4`,
      `struct ${name}_Column { ${terms.map((i) => `vec4 w${i}; `).join("")}vec4 bias; };`,
      `vec4 ${name}_row(int row) { return ${row("X", "row")}; }`,
      `${name}_Column ${name}_column(int n) { return ${name}_Column(${terms.map((i) => `${weights(`${i}`, "n")}, `).join("")}${bias}); }`,
      `#define ${name}_sum(row, column) ${sum}`,
      `#define ${name}_at(row, column) ${relu ? "tg_relu" : ""}(${name}_sum(row, column))`,
    ];
  }
  const slope = relu ? [`${name}_Y_Row y; `, `, ${name}_Y_row(row)`, `${name}_Y_Column y; `, `, ${name}_Y_column(n)`] : ["", "", "", ""];
  const rows = [0, 1, 2, 3];
  const gradient = `vec4(${rows.map((i) => `dot((row).d, (column).w${i})`).join(", ")})`;
  return [
    ...head,
    `struct ${name}_Row { vec4 d; ${slope[0]}};`,
    `struct ${name}_Column { ${rows.map((i) => `vec4 w${i}; `).join("")}${slope[2]}};`,
    `${name}_Row ${name}_row(int row) { return ${name}_Row(${row("DY", "row")}${slope[1]}); }`,
    `${name}_Column ${name}_column(int n) { return ${name}_Column(${rows.map((i) => weights(`4 * n + ${i}`, "0")).join(", ")}${slope[3]}); }`,
    `#define ${name}_at(row, column) ${relu ? `tg_relu_grad(${name}_Y_at((row).y, (column).y), ${gradient})` : gradient}`,
  ];
}

/** A float literal. @param {number} x */
const float = (x) => (Number.isInteger(x) ? `${x}.` : `${x}`);
