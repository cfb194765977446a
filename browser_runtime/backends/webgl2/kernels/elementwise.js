// Ops on the elements of two tensors, where no other kernel takes them along.
import { activationOf, find, slopeParts } from "./common.js";

/** @import { Kernel } from "./index.js" */

/** With an activation behind it, or the slope of one behind a gradient. @param {string} type @returns {Kernel} */
const joining = (type) => (lowering, group) => {
  const { inputs, outputs } = find(group, type);
  const activation = find(group, "activation");
  const grad = find(group, "activation_grad");
  const y = grad?.outputs.dx ?? (activation ?? { outputs }).outputs.y;
  const slope = slopeParts(lowering, grad);
  return [
    lowering.draw(type, {
      trips: 0,
      defines: { ACTIVATION: activationOf(activation), ...slope.defines },
      reads: [lowering.read("A", inputs.a), lowering.read("B", inputs.b), ...slope.reads],
      writes: [lowering.write("Y", y)],
      domain: lowering.layout(y),
    }),
  ];
};

/** @type {Record<string, Kernel>} */
export const kernels = { add: joining("add"), multiply: joining("multiply") };
