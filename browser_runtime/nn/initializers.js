// initializers.js: first values of parameters, drawn on the host in float64 in a fixed order and rounded once to float32.
import { size } from "./graph.js";
import { RandomStream, STREAMS } from "./random.js";

/** Variance of each family, as a function of the fans; biases are excluded from fanIn. */
const VARIANCES = {
  glorot: (/** @type {Fans} */ { fanIn, fanOut }) => 2 / (fanIn + fanOut), // Glorot and Bengio 2010
  he: (/** @type {Fans} */ { fanIn }) => 2 / fanIn, // He et al. 2015
  lecun: (/** @type {Fans} */ { fanIn }) => 1 / fanIn, // LeCun et al. 1998
};
const ALIASES = new Map([["xavier", "glorot"]]);
const DISTRIBUTIONS = ["uniform", "normal", "truncated_normal"];
const KINDS = [...Object.keys(VARIANCES), ...ALIASES.keys()].flatMap((family) => DISTRIBUTIONS.map((distribution) => `${family}_${distribution}`));

/** Deviation of a standard normal number that is drawn again beyond 2. */
const TRUNCATED_DEVIATION = 0.87962566103423978;

/** Multiply-adds of an orthogonal matrix that nobody should have to wait for longer: about 8 s. */
export const MAX_ORTHOGONAL = 2 ** 31;

/** @typedef {{fanIn: number, fanOut: number}} Fans inputs that a unit sums, and units that an input feeds */

/**
 * Values for one parameter, row-major. Random kinds draw from stream `init` of the seed, sub = parameterIndex.
 *
 * @param {string|number} kind one of KINDS, "orthogonal", "zeros", "ones"; a number stands for itself
 * @param {number[]} shape
 * @param {object} options
 * @param {number} [options.fanIn] random kinds need it
 * @param {number} [options.fanOut] Glorot needs it
 * @param {number} [options.seed] random kinds need it; 0 <= seed < 2^53
 * @param {number} [options.parameterIndex] the parameter's number in the model; random kinds need it
 * @returns {Float32Array}
 */
export function initialize(kind, shape, options = {}) {
  const count = size(shape);
  if (kind === "zeros") return new Float32Array(count);
  if (kind === "ones") return new Float32Array(count).fill(1);
  if (typeof kind === "number") return new Float32Array(count).fill(kind);
  const stream = () => new RandomStream(required(kind, options, "seed"), STREAMS.init, required(kind, options, "parameterIndex"));
  if (kind === "orthogonal") return orthogonal(count / (shape.at(-1) ?? 1), shape.at(-1) ?? 1, stream());
  if (!KINDS.includes(kind)) throw new RangeError(`no initializer ${kind}; use one of ${KINDS.join(", ")}, orthogonal, zeros, ones, or a number`);

  const [family, distribution] = [kind.slice(0, kind.indexOf("_")), kind.slice(kind.indexOf("_") + 1)];
  const name = /** @type {keyof typeof VARIANCES} */ (ALIASES.get(family) ?? family);
  const fanIn = required(kind, options, "fanIn");
  const fanOut = name === "glorot" ? required(kind, options, "fanOut") : 0;
  const variance = VARIANCES[name]({ fanIn, fanOut });
  const random = stream();
  if (distribution === "uniform") {
    const limit = Math.sqrt(3 * variance); // a uniform number in (-limit, limit) has the variance limit^2 / 3
    return Float32Array.from({ length: count }, () => (2 * random.uniform() - 1) * limit);
  }
  if (distribution === "truncated_normal") {
    const deviation = Math.sqrt(variance) / TRUNCATED_DEVIATION;
    return Float32Array.from({ length: count }, () => withinTwo(random) * deviation);
  }
  const deviation = Math.sqrt(variance);
  return Float32Array.from({ length: count }, () => random.normal() * deviation);
}

/** A standard normal number within -2 and 2. @param {RandomStream} random */
function withinTwo(random) {
  for (;;) {
    const value = random.normal();
    if (Math.abs(value) <= 2) return value;
  }
}

/**
 * Orthonormal columns, or rows where there are fewer of them: normal numbers, drawn row by row of the tall matrix, are made orthogonal one column
 * after the other. Each is subtracted from twice, after which rounding is all that is left (Giraud et al. 2005). The diagonal of R is
 * positive, so every such matrix is equally likely (Mezzadri 2007).
 * @param {number} rows @param {number} columns @param {RandomStream} random
 */
function orthogonal(rows, columns, random) {
  const [long, short] = [Math.max(rows, columns), Math.min(rows, columns)];
  const vectors = Array.from({ length: short }, () => new Float64Array(long));
  for (let i = 0; i < long; i++) for (const vector of vectors) vector[i] = random.normal();
  vectors.forEach((vector, j) => {
    for (let pass = 0; pass < 2; pass++) {
      for (let k = 0; k < j; k++) {
        const other = vectors[k];
        const along = dot(vector, other);
        for (let i = 0; i < long; i++) vector[i] -= along * other[i];
      }
    }
    const norm = Math.sqrt(dot(vector, vector));
    for (let i = 0; i < long; i++) vector[i] /= norm;
  });
  const out = new Float32Array(rows * columns);
  const [along, across] = rows >= columns ? [columns, 1] : [1, columns];
  vectors.forEach((vector, j) => vector.forEach((value, i) => (out[i * along + j * across] = value)));
  return out;
}

/** @param {Float64Array} a @param {Float64Array} b */
function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** @param {string} kind @param {Record<string, number | undefined>} options @param {string} name @returns {number} */
function required(kind, options, name) {
  const value = options[name];
  if (typeof value !== "number" || Number.isNaN(value)) throw new TypeError(`initializer ${kind} needs ${name}`);
  return value;
}
