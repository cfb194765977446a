// Losses, as the planner knows them. Formulas: reference/losses.js; kernels: shaders/lib/loss.glsl.

/**
 * `pointwise` ones treat each output alone, the others need the whole row. `of`: what targets are. `logits`: the loss applies the last activation
 * itself. `range`: what targets may be.
 * @type {Record<string, {pointwise: boolean, of: "classes"|"values", logits?: boolean, range?: [number, number]}>}
 */
export const losses = {
  bce: { pointwise: true, of: "classes", logits: true, range: [0, 1] },
  softmax_cross_entropy: { pointwise: false, of: "classes", logits: true, range: [0, 1] },
  hinge: { pointwise: true, of: "classes", logits: true, range: [-1, 1] },
  mse: { pointwise: true, of: "values" },
  mae: { pointwise: true, of: "values" },
  huber: { pointwise: true, of: "values" },
};

/** The spec's loss with its options, also where only its name is given. @param {any} spec @returns {{type: string} & Record<string, any>} */
export const lossOf = ({ loss }) => (typeof loss === "string" ? { type: loss } : loss);

/** @param {any} spec @returns {string} */
export const lossType = (spec) => lossOf(spec).type;

/**
 * What the loss op needs to know besides.
 * @param {any} spec @param {number} outputs
 * @returns {{attrs: {fn: string, smoothing: number, delta: number}, weights: number[]|null}} `weights`: of each class, or of the 1 of each output
 */
export function lossOptions(spec, outputs) {
  const { type, label_smoothing: smoothing = 0, delta = 1, class_weights = null, pos_weight = null } = lossOf(spec);
  const weights = class_weights ?? (typeof pos_weight === "number" ? new Array(outputs).fill(pos_weight) : pos_weight);
  return { attrs: { fn: type, smoothing, delta }, weights };
}
