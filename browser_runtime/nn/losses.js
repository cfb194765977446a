// Losses, as the planner knows them. Formulas: reference/losses.js; kernels: shaders/lib/loss.glsl.

/**
 * `pointwise` ones treat each output alone, the others need the whole row.
 * @type {Record<string, {pointwise: boolean}>}
 */
export const losses = {
  bce: { pointwise: true },
  mse: { pointwise: true },
  softmax_cross_entropy: { pointwise: false },
};
