// Planning: all that a session is made from but rows, weights and GL. The page does it, whose modules these are anyway, for estimate():
// the Worker then loads a third of what it would have to, and what it must load is what the first step waits for.
import { EngineError } from "../errors.js";
import { lower } from "../backends/webgl2/lower.js";
import { checkData } from "./data.js";
import { planFor } from "./estimate.js";
import { placeholder, withoutTraining } from "./predicting.js";

/** @import { DeviceOptions } from "../backends/webgl2/device.js" */
/** @import { Limits, Lowered, Rows } from "../backends/webgl2/lower.js" */
/** @import { Plan } from "../plan/plan.js" */
/** @import { Data, NamedData } from "./data.js" */

/** Plain data, which can be posted; `ms`: how long it took.
 * @typedef {{spec: any, plan: Plan, lowered: Lowered, rows: Rows, labels: "index"|"values", ms: number}} Planned */

/**
 * @param {any} validated a job spec, validated
 * @param {Data|undefined} given may be left out where the spec only predicts
 * @param {Limits} limits of the device @param {DeviceOptions} [options] what was chosen for it
 * @returns {{planned: Planned, data: NamedData}} the data with its inputs by name
 * @throws {EngineError}
 */
export function planSession(validated, given, limits, { rows: wanted, convolution } = {}) {
  const started = performance.now();
  const spec = validated.predict ? withoutTraining(validated) : validated;
  if (given === undefined && !spec.predict) throw new EngineError("data_invalid", "data: {x, y} is needed", { field: "data" });
  const data = given === undefined ? placeholder(spec) : checkData(spec.model.input, given);
  const { plan, rows, labels } = planFor(spec, data, limits, convolution);
  const lowered = lower(plan, limits, rows, wanted);
  return { planned: { spec, plan, lowered, rows, labels, ms: performance.now() - started }, data };
}
