// sessions.js: a session on an engine of this thread: planned as the page does it, compiled as the Worker does.
import { validateSpec } from "../../browser_runtime/nn/spec.js";
import { planSession } from "../../browser_runtime/train/planning.js";

/** @import { Engine } from "../../browser_runtime/train/engine.js" */

/** @param {Engine} engine @param {any} spec @param {{data: any, initialWeights?: any}} options @param {any} [device] options that the engine was made with */
export async function compileOn(engine, spec, { data: given, initialWeights }, device) {
  const { planned, data } = planSession(validateSpec(spec), given, engine.device.record, device);
  return engine.compile(planned, { data, initialWeights });
}
