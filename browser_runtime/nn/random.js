// random.js: the counter-based random numbers of docs/page-protocol.md, bit for bit those of texelgrad/rng.py.
//
// Threefry2x32-20 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a block cipher of the counter
// under the key, so that draw i of a stream is known without the draws before it. Everything beyond the 32-bit words uses
// only + - * / and sqrt of float64, which IEEE 754 defines to the bit; Math.log is not among them.

/** What each stream of a seed is for; `sub` numbers the parameters (init) or the epochs (shuffle). */
export const STREAMS = Object.freeze({ init: 1, split: 2, shuffle: 3, dropout: 4, synthetic: 5 });

const PARITY = 0x1bd11bda;
const ROTATIONS = [[13, 15, 26, 6], [17, 29, 16, 24]];
const TWO_32 = 2 ** 32;
const MAX_SUB = 2 ** 24;

/**
 * @param {number} key0 all four are uint32
 * @param {number} key1
 * @param {number} counter0
 * @param {number} counter1
 * @param {Uint32Array} words receives the two words of the block
 */
export function threefry2x32(key0, key1, counter0, counter1, words) {
  const keys = [key0 | 0, key1 | 0, key0 ^ key1 ^ PARITY];
  let x0 = (counter0 + key0) | 0;
  let x1 = (counter1 + key1) | 0;
  for (let group = 0; group < 5; group++) {
    for (const rotation of ROTATIONS[group % 2]) {
      x0 = (x0 + x1) | 0;
      x1 = ((x1 << rotation) | (x1 >>> (32 - rotation))) ^ x0;
    }
    x0 = (x0 + keys[(group + 1) % 3]) | 0;
    x1 = (x1 + keys[(group + 2) % 3] + group + 1) | 0;
  }
  words[0] = x0;
  words[1] = x1;
}

/**
 * What a dropout layer draws its masks from: the key and the stream of its batches, and the words that keep an element.
 * @typedef {{key: [number, number], counter: number, threshold: number, kept: number}} DropoutDraw
 */

/** @param {number} seed of the run @param {number} number of the layer among the dropout layers, from 0 @param {number} rate 0 < rate < 1 @returns {DropoutDraw} */
export function dropoutDraw(seed, number, rate) {
  const kept = 1 - rate;
  return { key: [seed % TWO_32, Math.floor(seed / TWO_32)], counter: STREAMS.dropout * MAX_SUB + number, threshold: Math.min(Math.floor(kept * TWO_32), TWO_32 - 1), kept };
}

/**
 * The mask of one batch: its block in the layer's stream is the key of the elements' words.
 * @param {DropoutDraw} draw @param {number} batch of the run, counted from 0 @param {number} count elements of the batch, row by row
 * @returns {Uint8Array} 1 where an element is kept
 */
export function dropoutMask({ key, counter, threshold }, batch, count) {
  const [own, words] = [new Uint32Array(2), new Uint32Array(2)];
  threefry2x32(key[0], key[1], batch, counter, own);
  const mask = new Uint8Array(count);
  for (let element = 0; element < count; element++) {
    if (element % 2 === 0) threefry2x32(own[0], own[1], element / 2, 0, words);
    mask[element] = words[element % 2] < threshold ? 1 : 0;
  }
  return mask;
}

/** The words of one stream of a seed, in order, and what is made of them. */
export class RandomStream {
  /**
   * @param {number} seed whole, 0 <= seed < 2^53
   * @param {number} stream one of STREAMS
   * @param {number} [sub] whole, 0 <= sub < 2^24
   */
  constructor(seed, stream, sub = 0) {
    if (!Number.isSafeInteger(seed) || seed < 0) throw new RangeError(`seed must be whole, 0 <= seed < 2^53, not ${seed}`);
    if (!Number.isInteger(sub) || sub < 0 || sub >= MAX_SUB) throw new RangeError(`sub must be whole, 0 <= sub < 2^24, not ${sub}`);
    this.key0 = seed % TWO_32;
    this.key1 = Math.floor(seed / TWO_32);
    this.counter1 = stream * MAX_SUB + sub;
    this.nextBlock = 0;
    this.block = new Uint32Array(2);
    this.left = 0; // words of `block` not yet taken
    this.spare = NaN; // v of the last polar pair, NaN when taken
  }

  /** @returns {number} the next uint32 */
  word() {
    if (this.left === 0) {
      if (this.nextBlock === TWO_32) throw new RangeError("a stream has 2^33 words");
      threefry2x32(this.key0, this.key1, this.nextBlock++, this.counter1, this.block);
      this.left = 2;
    }
    return this.block[2 - this.left--];
  }

  /** @returns {number} in (0, 1), a multiple of 2^-33 */
  uniform() {
    return (this.word() + 0.5) / TWO_32;
  }

  /** @param {number} m whole, 1 <= m <= 2^32 @returns {number} whole, 0 <= it < m, each equally likely */
  bounded(m) {
    const limit = TWO_32 - (TWO_32 % m);
    for (;;) {
      const word = this.word();
      if (word < limit) return word % m; // without the limit, small numbers would come up more often
    }
  }

  /** @returns {number} standard normal, by Marsaglia's polar method */
  normal() {
    if (!Number.isNaN(this.spare)) {
      const spare = this.spare;
      this.spare = NaN;
      return spare;
    }
    for (;;) {
      const u = 2 * this.uniform() - 1;
      const v = 2 * this.uniform() - 1;
      const s = u * u + v * v; // never 0: u and v are odd multiples of 2^-32
      if (s < 1) {
        const factor = Math.sqrt((-2 * log(s)) / s);
        this.spare = v * factor;
        return u * factor;
      }
    }
  }

  /** @param {number} n @returns {Uint32Array} 0..n-1 in random order, by Fisher-Yates from the end */
  permutation(n) {
    const order = Uint32Array.from({ length: n }, (_, index) => index);
    for (let k = n - 1; k >= 1; k--) {
      const j = this.bounded(k + 1);
      const kept = order[k];
      order[k] = order[j];
      order[j] = kept;
    }
    return order;
  }
}

/**
 * @param {number} n @param {number} seed @param {number} stream one of STREAMS @param {number} [sub]
 * @returns {Uint32Array} the first permutation of 0..n-1 that the stream gives
 */
export function permutation(n, seed, stream, sub = 0) {
  return new RandomStream(seed, stream, sub).permutation(n);
}

const LN2_HIGH = 0.693147180369123816490; // the first 33 bits of ln 2: k * LN2_HIGH is exact
const LN2_LOW = 1.90821492927058770002e-10;
const LOG_TERMS = 12; // z < 0.02945: the first term left out is below 2^-60

const float64 = new Float64Array(1);
const words64 = new Uint32Array(float64.buffer); // little-endian, as every machine that runs WebGL2

/**
 * Natural logarithm, the same bits on every machine: x = 2^k m, sqrt(1/2) <= m < sqrt(2), then log(m) = 2 atanh(f / (2 + f)).
 * @param {number} x positive, normal, finite
 * @returns {number} error below 1 ULP
 */
export function log(x) {
  float64[0] = x;
  let k = (words64[1] >>> 20) - 1023;
  words64[1] = (words64[1] & 0xfffff) | 0x3ff00000;
  let m = float64[0];
  if (m >= Math.SQRT2) {
    m = m / 2;
    k = k + 1;
  }
  const f = m - 1;
  const s = f / (2 + f);
  const z = s * s;
  let p = 0;
  for (let term = LOG_TERMS; term >= 1; term--) p = p * z + 2 / (2 * term + 1);
  const h = 0.5 * f * f;
  return k * LN2_HIGH + (f - (h - (s * (h + z * p) + k * LN2_LOW)));
}
