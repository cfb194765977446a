// The optimizer's update: alone, or as the end of a draw that makes the gradient.
import { exactFloat, find } from "./common.js";

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
      defines: updateDefines(attrs),
      writes: names.map((key) => lowering.write(key.toUpperCase(), kept[key])),
      domain: lowering.layout(kept.w),
    },
  };
}

/** What nobody asked for costs nothing. @param {any} attrs as plan/autodiff.js makes them */
function updateDefines({ rule, clip, multiplier, penalised, shrinks }) {
  return {
    OPTIMIZER: rule,
    ...(clip?.value && { CLIP_VALUE: 1 }),
    ...(penalised && { PENALTY: 1 }),
    ...(shrinks && { DECAY: 1 }),
    ...(multiplier !== 1 && { RATE_SCALE: exactFloat(multiplier) }),
  };
}
