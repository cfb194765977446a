// Dropout, forward and backward.
import { slopeParts } from "./common.js";

/** Trips of the loops that draw the words of a row: three blocks of five times four rounds, and four lanes. */
const TRIPS_OF_ROW = 3 * (1 + 5 * 5) + 4;

/** @type {Record<string, import("./index.js").Kernel>} */
export const kernels = {
  dropout(lowering, { ops: [op, grad] }) {
    const { key, counter, threshold, kept } = op.attrs;
    const y = grad?.outputs.dx ?? op.outputs.y;
    const domain = lowering.layout(y);
    const slope = slopeParts(lowering, grad);
    const scale = Math.fround(1 / kept);
    return [
      lowering.draw("dropout", {
        trips: (1 + domain.layers) * TRIPS_OF_ROW,
        defines: {
          KEY: `uvec2(${key[0]}u, ${key[1]}u)`, COUNTER: `${counter}u`, THRESHOLD: `${threshold}u`, SCALE: Number.isInteger(scale) ? `${scale}.` : scale, ...slope.defines,
        },
        reads: [lowering.read("X", op.inputs.x), ...slope.reads],
        writes: [lowering.write("Y", y)],
        domain,
      }),
    ];
  },
};
