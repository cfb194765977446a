// random_probe.js: what tests need from nn/random.js and nn/initializers.js in one call each.
import { initialize } from "../../browser_runtime/nn/initializers.js";
import { RandomStream, log, threefry2x32 } from "../../browser_runtime/nn/random.js";

export { initialize };

/** @param {[number, number]} key @param {{data: Uint32Array}} counters pairs @returns {Uint32Array} pairs of words */
export function blocks(key, counters) {
  const words = new Uint32Array(counters.data.length);
  for (let at = 0; at < words.length; at += 2) {
    threefry2x32(key[0], key[1], counters.data[at], counters.data[at + 1], words.subarray(at, at + 2));
  }
  return words;
}

/**
 * Calls methods of one stream one after another, so that the state between them is tested too.
 * @param {number} seed @param {number} stream @param {number} sub
 * @param {["word" | "uniform" | "normal" | "permutation", number][]} draws method and count (n for permutation)
 */
export function draw(seed, stream, sub, draws) {
  const random = new RandomStream(seed, stream, sub);
  return draws.map(([method, count]) =>
    method === "permutation" ? random.permutation(count) : Float64Array.from({ length: count }, () => random[method]()));
}

/** @param {number} seed @param {number} stream @param {{data: Float64Array}} bounds */
export function bounded(seed, stream, bounds) {
  const random = new RandomStream(seed, stream);
  return Float64Array.from(bounds.data, (bound) => random.bounded(bound));
}

/** @param {{data: Float64Array}} x */
export function logs(x) {
  return x.data.map(log);
}
