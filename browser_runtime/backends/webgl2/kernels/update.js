// The optimizer's update: alone, or as the end of a draw that makes the gradient.
import { find } from "./common.js";

/** @import { Lowering } from "../lower.js" */

/** What a draw that ends in the update needs: all but the gradient. `states` begins with the parameter. @param {Lowering} lowering @param {any} group */
export function updateParts(lowering, group) {
  const { inputs, attrs } = find(group, "update");
  const { dw, ...kept } = inputs;
  const names = Object.keys(kept);
  return {
    gradient: dw,
    states: names.map((key) => lowering.read(key.toUpperCase(), kept[key])),
    update: {
      defines: { OPTIMIZER: optimizerName(attrs.optimizer) },
      writes: names.map((key) => lowering.write(key.toUpperCase(), kept[key])),
      domain: lowering.layout(kept.w),
    },
  };
}

/** @param {any} optimizer */
function optimizerName(optimizer) {
  if (optimizer.type === "adam") return "ADAM";
  return optimizer.momentum > 0 ? "MOMENTUM" : "SGD";
}
