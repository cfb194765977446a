// Divergence: what is said of the first loss that is not finite: at which step, and what may help there.
import { learningRate } from "../nn/schedules.js";

/** @import { Point } from "./pipeline.js" */

/**
 * The loss of a step is that of its batch before its update: at step 1 nothing was learnt yet, so no learning rate is to blame.
 * @param {any} spec validated @param {number} totalSteps
 * @param {Point} point the first whose loss is not finite @param {Point|null} before the last whose loss was
 * @returns {{message: string, field: string}} `field` of the spec that may help
 */
export function divergence({ data, optimizer, fine_tune: tune }, totalSteps, { step, loss }, before) {
  if (step === 1) {
    const { field, advice } = atOnce(data.normalize, tune);
    return { field, message: `the loss is ${loss} at step 1, before any update: ${advice}, a smaller optimizer.lr can't` };
  }
  const was = before?.loss === undefined ? "" : `, after ${short(before.loss)} at step ${before.step}`;
  const rate = short(learningRate(optimizer, step - 2, totalSteps));
  return { field: "optimizer.lr", message: `the loss is ${loss} at step ${step}${was}: training diverged; a smaller optimizer.lr (it was ${rate} at step ${step - 1}) may help` };
}

/**
 * What is to blame before any update. Where the spec fits a normalization already, the network's inputs are not.
 * @param {string} normalize @param {any} tune
 */
function atOnce(normalize, tune) {
  if (normalize === "standard" || normalize === "minmax") {
    return { field: tune ? "fine_tune" : "data", advice: `with data.normalize: ${normalize} it is the targets, or the weights that it begins with, that are too large; others may help` };
  }
  const blamed = tune ? "the data, or the weights that it begins with, are" : "the data are";
  const help = normalize === "inherit" ? "data.normalize: standard or minmax instead of inherit" : "data.normalize";
  return { field: "data.normalize", advice: `${blamed} too large; ${help} may help` };
}

/** @param {number} value */
const short = (value) => String(Number(value.toPrecision(3)));
