// The optimizer's update: alone, or as the end of a draw that makes the gradient.
import { exactFloat, find } from "./common.js";

/** @import { Lowering } from "../lowering.js" */

/** What a draw that ends in the update needs: all but the gradient. `states` begins with the parameter. @param {Lowering} lowering @param {any} group */
export function updateParts(lowering, group) {
  const { inputs, attrs } = find(group, "update");
  const { dw, factor, ...kept } = inputs;
  const names = Object.keys(kept);
  return {
    gradient: dw,
    states: [...names.map((key) => lowering.read(key.toUpperCase(), kept[key])), ...(factor ? [lowering.read("FACTOR", factor)] : [])],
    update: {
      defines: updateDefines(attrs),
      writes: names.map((key) => lowering.write(key.toUpperCase(), kept[key])),
      domain: lowering.layout(kept.w),
    },
  };
}

/** @type {Record<string, import("./index.js").Kernel>} */
export const kernels = {
  // Of a gradient that others read too, and which therefore was stored.
  update(lowering, group) {
    const { update, states, gradient } = updateParts(lowering, group);
    const defines = { ...update.defines, SPLITS: 1, DW_SPLIT_ROWS: 0 };
    return [lowering.draw("update", { ...update, trips: 8, defines, reads: [lowering.readNew("DW", gradient), ...states] })];
  },

  // The gradient of a step's batches so far.
  accumulate(lowering, group) {
    const { inputs, outputs } = find(group, "accumulate");
    return [
      lowering.draw("accumulate", {
        trips: 0, defines: {}, reads: [lowering.read("DW", inputs.dw), lowering.read("SUM", inputs.sum)],
        writes: [lowering.write("SUM", outputs.sum)], domain: lowering.layout(outputs.sum),
      }),
    ];
  },
};

/** What nobody asked for costs nothing. @param {any} attrs as plan/autodiff.js makes them */
function updateDefines({ rule, clip, multiplier, penalised, shrinks }) {
  return {
    OPTIMIZER: rule,
    ...(clip?.value && { CLIP_VALUE: 1 }),
    ...(clip?.global_norm && { CLIP_NORM: 1 }),
    ...(penalised && { PENALTY: 1 }),
    ...(shrinks && { DECAY: 1 }),
    ...(multiplier !== 1 && { RATE_SCALE: exactFloat(multiplier) }),
  };
}
