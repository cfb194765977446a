// Ops on single elements, where no other kernel takes them along.
import { activationOf, find, slopeSource } from "./common.js";

/** @type {Record<string, import("./index.js").Kernel>} */
export const kernels = {
  add(lowering, group) {
    const { inputs, outputs } = find(group, "add");
    const activation = find(group, "activation");
    const grad = find(group, "activation_grad");
    const y = grad?.outputs.dx ?? (activation ?? { outputs }).outputs.y;
    return [
      lowering.draw("add", {
        trips: 0,
        defines: { ACTIVATION: activationOf(activation), GRAD_ACTIVATION: activationOf(grad) },
        reads: [lowering.read("A", inputs.a), lowering.read("B", inputs.b), ...(grad ? [lowering.read("G", slopeSource(grad))] : [])],
        writes: [lowering.write("Y", y)],
        domain: lowering.layout(y),
      }),
    ];
  },
};
