// Activations, where no other kernel takes them along, and softmax over channels, which none can.
import { ACTIVATIONS, BLOCK, slopeSource, softmaxTrips } from "./common.js";

/** @type {Record<string, import("./index.js").Kernel>} */
export const kernels = {
  activation(lowering, { ops: [{ inputs, outputs, attrs }] }) {
    return [
      lowering.draw("activation", {
        trips: 0,
        defines: { ACTIVATION: ACTIVATIONS[attrs.fn] },
        reads: [lowering.read("X", inputs.x)],
        writes: [lowering.write("Y", outputs.y)],
        domain: lowering.layout(outputs.y),
      }),
    ];
  },

  activation_grad(lowering, { ops: [grad] }) {
    const { inputs, outputs, attrs } = grad;
    return [
      lowering.draw("activation_grad", {
        trips: 0,
        defines: { GRAD_ACTIVATION: ACTIVATIONS[attrs.fn] },
        reads: [lowering.read("DY", inputs.dy), lowering.read("Y", slopeSource(grad))],
        writes: [lowering.write("DX", outputs.dx)],
        domain: lowering.layout(outputs.dx),
      }),
    ];
  },

  softmax_channels(lowering, { ops: [{ inputs, outputs }] }) {
    const domain = lowering.layout(outputs.y);
    return [
      lowering.draw("softmax_channels", {
        trips: domain.layers * softmaxTrips(domain.texelsPerPixel),
        defines: { BLOCK },
        reads: [lowering.read("X", inputs.x)],
        writes: [lowering.write("Y", outputs.y)],
        domain,
      }),
    ];
  },

  softmax_channels_grad(lowering, { ops: [{ inputs, outputs }] }) {
    const domain = lowering.layout(outputs.dx);
    return [
      lowering.draw("softmax_channels_grad", {
        trips: domain.layers * domain.texelsPerPixel,
        defines: { BLOCK },
        reads: [lowering.read("DY", inputs.dy), lowering.read("Y", inputs.y)],
        writes: [lowering.write("DX", outputs.dx)],
        domain,
      }),
    ];
  },
};
