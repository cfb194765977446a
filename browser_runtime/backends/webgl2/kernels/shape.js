// Ops that move elements.
import { slopeParts } from "./common.js";

/** @import { Kernel } from "./index.js" */

const pair = (/** @type {number[]} */ [y, x]) => `ivec2(${y}, ${x})`;

/**
 * A draw that moves elements of x, or of several tensors, to y, behind which a gradient may meet the slope of an activation.
 * @param {string} shader @param {Record<string, string>} names of what it reads in the shader, by the op's own
 * @param {(attrs: any, layout: (input: string) => import("../layout.js").Layout) => Record<string, string|number>} defines
 * @returns {Kernel}
 */
const moving = (shader, names, defines) => (lowering, { ops: [op, grad] }) => {
  const y = grad?.outputs.dx ?? op.outputs.y;
  const slope = slopeParts(lowering, grad);
  return [
    lowering.draw(shader, {
      trips: 0,
      defines: { ...defines(op.attrs, (input) => lowering.layout(op.inputs[input])), ...slope.defines },
      reads: [...Object.entries(names).map(([input, name]) => lowering.read(name, op.inputs[input])), ...slope.reads],
      writes: [lowering.write("Y", y)],
      domain: lowering.layout(y),
    }),
  ];
};

/** In which lane a channel lies. @param {number} channel may be negative */
const lane = (channel) => ((channel % 4) + 4) % 4;

/** @type {Record<string, Kernel>} */
export const kernels = {
  reshape: moving("reshape", { x: "X" }, (_, layout) => ({ FROM_CHANNELS: layout("x").channels })),
  shift2d: moving("shift2d", { x: "X" }, ({ input, output, offset }) => ({ INPUT: pair(input), OUTPUT: pair(output), OFFSET: pair(offset) })),
  concat: moving("concat", { a: "A", b: "B" }, ({ split }) => ({ SPLIT: split, LANE: lane(-split) })),
  slice_channels: moving("slice_channels", { x: "X" }, ({ first }) => ({ FIRST: first, LANE: lane(first) })),
};
