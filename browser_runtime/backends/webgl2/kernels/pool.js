// Pooling.
import { ACTIVATIONS, area, find, windowDefines } from "./common.js";

/** @type {Record<string, import("./index.js").Kernel>} */
export const kernels = {
  max_pool2d(lowering, { ops: [{ inputs, outputs, attrs }] }) {
    const domain = lowering.layout(outputs.y);
    return [
      lowering.draw("max_pool2d", { trips: area(attrs.taps), defines: windowDefines(attrs), reads: [lowering.read("X", inputs.x)], writes: [lowering.write("Y", outputs.y)], domain }),
    ];
  },

  max_pool2d_grad(lowering, group) {
    const pool = find(group, "max_pool2d_grad");
    const grad = find(group, "activation_grad");
    const dx = (grad ?? pool).outputs.dx;
    const domain = lowering.layout(dx);
    const { taps, stride } = pool.attrs;
    return [
      lowering.draw("max_pool2d_grad", {
        // For each of its rows, all taps, and the earlier elements of each window that it stands in.
        trips: domain.layers * area(taps) * (1 + Math.ceil(taps[0] / stride[0]) * Math.ceil(taps[1] / stride[1])),
        defines: { ...windowDefines(pool.attrs), GRAD_ACTIVATION: ACTIVATIONS[grad?.attrs.fn ?? "linear"] },
        reads: [lowering.read("X", pool.inputs.x), lowering.read("Y", pool.inputs.y), lowering.read("DY", pool.inputs.dy)],
        writes: [lowering.write("DX", dx)],
        domain,
      }),
    ];
  },
};
