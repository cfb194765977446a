// long_batches_page.js: one step on a batch that is too long to be sent here, so that its numbers are made here.
import { train } from "../../browser_runtime/texelgrad.js";

/** Numbers that count up from `least` and begin again: exact in float32. @typedef {{shape: number[], least: number, unit: number, period: number}} Sawtooth */

/** @param {Sawtooth} sawtooth */
const made = ({ shape, least, unit, period }) => ({
  shape,
  data: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => least + (i % period) * unit),
});

/** The weights after a run. @param {any} spec @param {Sawtooth} x @param {Sawtooth} y @param {any} initialWeights */
export async function run(spec, x, y, initialWeights) {
  return (await train(spec, { x: made(x), y: made(y) }, { initialWeights })).weights;
}
