// Convolutions.
import { ceilDiv, size } from "../layout.js";
import { ACTIVATIONS, area, find, slopeParts, windowDefines } from "./common.js";
import { gradientInParts, sharedLines } from "./gradient_parts.js";

/**
 * How a convolution's groups meet its texels: whole texels of a group at once; every channel alone, lanes with lanes; or one by one, whatever
 * the groups are. With `read` and `made`, the trips that a sum over a group of the input or the output takes.
 * @param {any} attrs
 */
function groupsOf({ groups, input, output }) {
  const [channelsRead, channelsMade] = [input.at(-1), output.at(-1)];
  const [read, made] = [channelsRead / groups, channelsMade / groups];
  const texels = [ceilDiv(read, 4), ceilDiv(made, 4)];
  if (groups === 1 || (read % 4 === 0 && made % 4 === 0)) {
    return { kind: "", defines: { READ_TEXELS: texels[0], MADE_TEXELS: texels[1] }, read: texels[0], made: texels[1], samples: 1 };
  }
  if (read === 1 && made === 1) return { kind: "_depthwise", defines: {}, read: 1, made: 1, samples: 1 };
  const defines = { CHANNELS_READ: channelsRead, CHANNELS_MADE: channelsMade, GROUP_READ: read, GROUP_MADE: made, BLOCK: 4 * texels[0] };
  return { kind: "_grouped", defines, read, made, samples: 4 };
}

/**
 * What the products of a convolution run over, and its geometry: x, or what its windows hold, which are then the channels of one pixel.
 * @param {{inputs: Record<string, string>, attrs: any}} op
 */
function operandOf({ inputs: { x, patches }, attrs }) {
  if (!patches) return { x, attrs };
  const input = [...attrs.output.slice(0, 2), size(attrs.kernel.slice(0, -1))];
  return { x: patches, attrs: { ...attrs, input, taps: [1, 1], stride: [1, 1], dilation: [1, 1], padding: [0, 0] } };
}

/** @type {Record<string, import("./index.js").Kernel>} */
export const kernels = {
  im2col(lowering, group) {
    const { inputs, outputs, attrs } = find(group, "im2col");
    return [
      lowering.draw("im2col", {
        trips: 0,
        defines: { ...windowDefines(attrs), CHANNELS_READ: attrs.input[2] },
        reads: [lowering.read("X", inputs.x)],
        writes: [lowering.write("P", outputs.patches)],
        domain: lowering.layout(outputs.patches),
      }),
    ];
  },

  conv2d(lowering, group) {
    const conv = find(group, "conv2d");
    const { x, attrs } = operandOf(conv);
    const activation = find(group, "activation");
    const y = (activation ?? conv).outputs.y;
    const { kind, defines, read } = groupsOf(attrs);
    return [
      lowering.draw(`conv2d${kind}`, {
        trips: area(attrs.taps) * read,
        defines: { ...windowDefines(attrs), ...defines, ACTIVATION: ACTIVATIONS[activation?.attrs.fn ?? "linear"] },
        reads: [lowering.read("X", x), lowering.read("W", conv.inputs.w)],
        writes: [lowering.write("Y", y)],
        domain: lowering.layout(y),
      }),
    ];
  },

  conv2d_grad_input(lowering, group) {
    const conv = find(group, "conv2d_grad_input");
    const grad = find(group, "activation_grad");
    const dx = (grad ?? conv).outputs.dx;
    const { kind, defines, made } = groupsOf(conv.attrs);
    const w = lowering.layout(conv.inputs.w);
    const channels = conv.attrs.input[2] / conv.attrs.groups;
    // Weights that meet whole windows are one block, whose taps follow each other without a gap.
    const tapRows = w.blockRows === channels ? w.blockStride : channels;
    const slope = slopeParts(lowering, grad);
    return [
      lowering.draw(`conv2d${kind}_grad_input`, {
        trips: area(conv.attrs.taps) * made,
        defines: { ...windowDefines(conv.attrs), ...defines, ...(kind === "" && { TAP_ROWS: tapRows, TAP_CHANNELS: channels }), ...slope.defines },
        reads: [lowering.read("DY", conv.inputs.dy), lowering.read("W", conv.inputs.w), ...slope.reads],
        writes: [lowering.write("DX", dx)],
        domain: lowering.layout(dx),
      }),
    ];
  },

  conv2d_grad_weights(lowering, group) {
    const sum = find(group, "conv2d_grad_weights");
    const { x, attrs } = operandOf(sum);
    const { kind, defines, samples } = groupsOf(attrs);
    // Lines and columns of what is summed over: windows; for the bias of a transposed convolution, all that they slide over.
    const [height, width] = [0, 1].map((axis) => Math.max(attrs.output[axis], attrs.transposed ? attrs.input[axis] : 0));
    return gradientInParts(lowering, group, {
      kernel: `conv2d${kind}_grad_weights`,
      gradient: sum.outputs.dw,
      share: sharedLines((lowering.batchRows / 4) * height, 1 + (samples > 1 ? samples * (1 + width) : width)),
      defines: { ...windowDefines(attrs), ...defines },
      reads: [lowering.read("X", x), lowering.read("DY", sum.inputs.dy)],
    });
  },
};
