// Divergence: what is said of the first loss that is not finite: at which step, and what may help there.
import { learningRate } from "../nn/schedules.js";

/** @import { Point } from "./pipeline.js" */

/**
 * The loss of a step is that of its batch before its update: at step 1 nothing was learnt yet, so no learning rate is to blame.
 * @param {any} spec validated @param {number} totalSteps
 * @param {Point} point the first whose loss is not finite @param {Point|null} before the last whose loss was
 * @returns {{message: string, field: string}} `field` of the spec that may help
 */
export function divergence({ optimizer, fine_tune: tune }, totalSteps, { step, loss }, before) {
  if (step === 1) {
    const cause = tune ? "the data, or the weights that it begins with, are" : "the data are";
    return { field: "data.normalize", message: `the loss is ${loss} at step 1, before any update: ${cause} too large; data.normalize may help, a smaller optimizer.lr can't` };
  }
  const was = before?.loss === undefined ? "" : `, after ${short(before.loss)} at step ${before.step}`;
  const rate = short(learningRate(optimizer, step - 2, totalSteps));
  return { field: "optimizer.lr", message: `the loss is ${loss} at step ${step}${was}: training diverged; a smaller optimizer.lr (it was ${rate} at step ${step - 1}) may help` };
}

/** @param {number} value */
const short = (value) => String(Number(value.toPrecision(3)));
