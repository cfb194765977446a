// initializers.js: first values of parameters, drawn on the host in float64 in a fixed order and rounded once to float32.
import { RandomStream, STREAMS } from "./random.js";

/** Variance of each family, as a function of the fans; biases are excluded from fanIn. */
const VARIANCES = {
  glorot: (/** @type {Fans} */ { fanIn, fanOut }) => 2 / (fanIn + fanOut), // Glorot and Bengio 2010
  he: (/** @type {Fans} */ { fanIn }) => 2 / fanIn, // He et al. 2015
  lecun: (/** @type {Fans} */ { fanIn }) => 1 / fanIn, // LeCun et al. 1998
};
const ALIASES = new Map([["xavier", "glorot"]]);
const KINDS = [...Object.keys(VARIANCES), ...ALIASES.keys()].flatMap((family) => [`${family}_uniform`, `${family}_normal`]);

/** @typedef {{fanIn: number, fanOut: number}} Fans inputs that a unit sums, and units that an input feeds */

/**
 * Values for one parameter, row-major. Random kinds draw from stream `init` of the seed, sub = parameterIndex.
 *
 * @param {string} kind one of KINDS, "zeros", "ones", or "constant"
 * @param {number[]} shape
 * @param {object} options
 * @param {number} [options.fanIn] random kinds need it
 * @param {number} [options.fanOut] Glorot needs it
 * @param {number} [options.seed] random kinds need it; 0 <= seed < 2^53
 * @param {number} [options.parameterIndex] the parameter's number in the model; random kinds need it
 * @param {number} [options.value] "constant" needs it
 * @returns {Float32Array}
 */
export function initialize(kind, shape, options = {}) {
  const size = shape.reduce((product, extent) => product * extent, 1);
  if (kind === "zeros") return new Float32Array(size);
  if (kind === "ones") return new Float32Array(size).fill(1);
  if (kind === "constant") return new Float32Array(size).fill(required(kind, options, "value"));
  if (!KINDS.includes(kind)) throw new RangeError(`no initializer ${kind}; use one of ${KINDS.join(", ")}, zeros, ones, constant`);

  const [family, distribution] = kind.split("_");
  const name = /** @type {keyof typeof VARIANCES} */ (ALIASES.get(family) ?? family);
  const fanIn = required(kind, options, "fanIn");
  const fanOut = name === "glorot" ? required(kind, options, "fanOut") : 0;
  const variance = VARIANCES[name]({ fanIn, fanOut });
  const random = new RandomStream(
    required(kind, options, "seed"), STREAMS.init, required(kind, options, "parameterIndex"));
  if (distribution === "uniform") {
    const limit = Math.sqrt(3 * variance); // a uniform number in (-limit, limit) has the variance limit^2 / 3
    return Float32Array.from({ length: size }, () => (2 * random.uniform() - 1) * limit);
  }
  const deviation = Math.sqrt(variance);
  return Float32Array.from({ length: size }, () => random.normal() * deviation);
}

/** @param {string} kind @param {Record<string, number | undefined>} options @param {string} name @returns {number} */
function required(kind, options, name) {
  const value = options[name];
  if (typeof value !== "number" || Number.isNaN(value)) throw new TypeError(`initializer ${kind} needs ${name}`);
  return value;
}
