// Estimate: what a spec would cost on some data, from shapes alone. No device, no rows.
import { EngineError, shown } from "../errors.js";
import { chooser } from "../backends/webgl2/convolution.js";
import { drawCalls } from "../backends/webgl2/draw.js";
import { ROW_ALIGNMENT, roundUp } from "../backends/webgl2/layout.js";
import { lower, stageOf } from "../backends/webgl2/lower.js";
import { buildModel } from "../nn/model.js";
import { validatePageSpec } from "../nn/spec_page.js";
import { buildPlan } from "../plan/plan.js";
import { Batches, byName, checkShapes } from "./data.js";
import { withoutTraining } from "./predicting.js";
import { checkRowWeights } from "./row_weights.js";
import { splitSizes } from "./split.js";
import { countParameters } from "./weights.js";

/** Limits assumed where there is no device to ask. */
const ASSUMED = { maxDrawBuffers: 8, maxTextureSize: 8192, maxArrayLayers: 256 };

/**
 * Counts of the data's rows by use, without touching a row: what does not fit is refused before anything is made for it.
 * @param {any} spec @param {number} total @param {{leastRows: number}} model
 * @throws {EngineError} spec_invalid where batches are too large, or the last of an epoch too small
 */
function countRows(spec, total, { leastRows: trained }) {
  const leastRows = spec.predict ? 1 : trained;
  const { train, validation } = splitSizes(spec, total);
  const batches = new Batches(spec, { length: train });
  const { size, totalSteps } = batches;
  const last = batches.rows(batches.perEpoch - 1);
  if (last < leastRows) {
    const message = `train.batch_size: ${size} leaves a batch of ${last} of the ${train} training rows, and batch_norm needs the variance of at least ${leastRows}`;
    throw new EngineError("spec_invalid", message, { field: "train.batch_size" });
  }
  return { rows: { total, train, validation, batch: size }, totalSteps };
}

/**
 * The plan of a spec for data of these shapes.
 * @param {any} spec validated @param {{x: Record<string, {shape: number[]}>, y: {shape: number[]}, weight?: any}} data inputs by name
 * @param {import("../backends/webgl2/lower.js").Limits} [limits] of the device
 * @param {"direct"|"im2col"} [convolution] the algorithm of all convolutions; chosen for each where left out
 * @throws {EngineError} data_invalid where they do not fit each other, and as countRows() does
 */
export function planFor(spec, data, limits = ASSUMED, convolution) {
  const model = buildModel(spec, { training: true });
  const { rows: total, labels } = checkShapes(spec, data, model.outputShape);
  const weighted = data.weight !== undefined;
  if (weighted) checkRowWeights(data.weight, total);
  const { rows, totalSteps } = countRows(spec, total, model);
  const choose = chooser(limits, [roundUp(rows.batch, ROW_ALIGNMENT), stageOf(rows)], convolution);
  return { plan: buildPlan(spec, { labels, weighted }, choose), rows, totalSteps, labels };
}

/**
 * What a spec would cost, exactly for a device of these limits.
 * @param {any} input a job spec
 * @param {{x: {shape: number[]}|Record<string, {shape: number[]}>, y: {shape: number[]}, weight?: {shape: number[]}}} data its shapes
 * @param {import("../backends/webgl2/lower.js").Limits} [limits] of the device, such as probe() gives; those of a desktop where left out
 * @returns {{parameters: number, textureBytes: number, textures: number, drawsPerStep: number, totalSteps: number,
 *   convolutions: import("../plan/plan.js").Plan["convolutions"]}} bytes, as allocated
 * @throws {EngineError} as compile() does
 */
export function estimate(input, data, limits = ASSUMED) {
  checkLimits(limits);
  const validated = validatePageSpec(input);
  const spec = validated.predict ? withoutTraining(validated) : validated;
  const { plan, rows, totalSteps } = planFor(spec, byName(spec.model.input, data), limits);
  const lowered = lower(plan, limits, rows);
  return {
    parameters: countParameters(plan),
    textureBytes: lowered.bytes,
    textures: lowered.textures.length,
    drawsPerStep: drawCalls(lowered.phases.train.flat()),
    totalSteps,
    convolutions: plan.convolutions,
  };
}

/** @param {any} limits @throws {EngineError} spec_invalid where one that is needed is none */
function checkLimits(limits) {
  for (const name of Object.keys(ASSUMED)) {
    const value = limits?.[name];
    if (Number.isSafeInteger(value) && value > 0) continue;
    throw new EngineError("spec_invalid", `limits.${name}: ${shown(value)} is not legal; legal: a positive whole number, as in the record that probe() gives`, { field: `limits.${name}` });
  }
}
