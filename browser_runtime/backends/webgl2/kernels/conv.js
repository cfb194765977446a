// Convolutions.
import { matrixOf, rowsPerFragment } from "../layout.js";
import { ACTIVATIONS, area, find, MAX_TRIPS, slopeSource, windowDefines } from "./common.js";
import { updateParts } from "./update.js";

/** Fragments that a draw should have: what a GPU holds at once. */
const FRAGMENTS = 8192;

/** @type {Record<string, import("./index.js").Kernel>} */
export const kernels = {
  conv2d(lowering, group) {
    const conv = find(group, "conv2d");
    const activation = find(group, "activation");
    const y = (activation ?? conv).outputs.y;
    return [
      lowering.draw("conv2d", {
        trips: area(conv.attrs.taps) * lowering.layout(conv.inputs.x).texelsPerPixel,
        defines: { ...windowDefines(conv.attrs), ACTIVATION: ACTIVATIONS[activation?.attrs.fn ?? "linear"] },
        reads: [lowering.read("X", conv.inputs.x), lowering.read("W", conv.inputs.w)],
        writes: [lowering.write("Y", y)],
        domain: lowering.layout(y),
      }),
    ];
  },

  conv2d_grad_input(lowering, group) {
    const conv = find(group, "conv2d_grad_input");
    const grad = find(group, "activation_grad");
    const dx = (grad ?? conv).outputs.dx;
    return [
      lowering.draw("conv2d_grad_input", {
        trips: area(conv.attrs.taps) * lowering.layout(conv.inputs.dy).texelsPerPixel,
        defines: { ...windowDefines(conv.attrs), GRAD_ACTIVATION: ACTIVATIONS[grad?.attrs.fn ?? "linear"] },
        reads: [
          lowering.read("DY", conv.inputs.dy), lowering.read("W", conv.inputs.w), ...(grad ? [lowering.read("Y", slopeSource(grad))] : []),
        ],
        writes: [lowering.write("DX", dx)],
        domain: lowering.layout(dx),
      }),
    ];
  },

  conv2d_grad_weights(lowering, group) {
    const { inputs, attrs } = find(group, "conv2d_grad_weights");
    const { update, states, gradient } = updateParts(lowering, group);
    const layers = rowsPerFragment(4, lowering.maxDrawBuffers);
    const { shape, bias } = lowering.tensor(gradient);
    const one = lowering.measure({ ...matrixOf(shape), layers, bias });
    // Enough fragments to fill a device or to keep their loops short, and no less than a line of 4 samples each.
    const lines = (lowering.batchRows / 4) * attrs.output[0];
    const tripsOfLine = 1 + attrs.output[1];
    const least = Math.max(Math.ceil(FRAGMENTS / one.texels), Math.ceil(lines / Math.max(1, Math.floor(MAX_TRIPS / tripsOfLine))));
    const splits = Math.max(1, Math.min(lines, least));
    const stored = lowering.scratch(gradient, { ...one, groups: one.groups * splits, texels: one.texels * splits }).layout;
    return [
      lowering.draw("conv2d_grad_weights", {
        trips: Math.ceil(lines / splits) * tripsOfLine,
        defines: { ...windowDefines(attrs), SPLITS: splits, WEIGHT_GROUPS: one.groups },
        reads: [lowering.read("X", inputs.x), lowering.read("DY", inputs.dy)],
        writes: [lowering.write("DW", gradient)],
        domain: stored,
      }),
      lowering.draw("update", { ...update, trips: 8 * splits, defines: { ...update.defines, SPLITS: splits, DW_SPLIT_ROWS: one.groups * layers }, reads: [lowering.read("DW", gradient), ...states] }),
    ];
  },
};
