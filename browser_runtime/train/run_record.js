// Run record: what a session says of itself: what it ran on, what it cost, where its validations stand.
import { drawCalls } from "../backends/webgl2/draw.js";
import { countParameters } from "./weights.js";

/** @import { Recorded } from "./normalization.js" */
/** @import { Point } from "./pipeline.js" */
/** @import { Session } from "./session.js" */

/** What a run ran on and what it cost; bytes of this run's textures. `validation`: step and metrics of the last validation, or of the one whose
 * weights were restored; `diverged`: at which step the loss became NaN or infinite, where training went on.
 * @typedef {{validation: Point|null, diverged: string|null, early_stopping: import("./early_stopping.js").StoppingRecord|null, backend: string, renderer: string, software: boolean, planKey: string, parameters: number,
 *   convolutions: import("../plan/plan.js").Plan["convolutions"], drawsPerStep: number, glCallsPerStep: number,
 *   plannedTextureBytes: number, peakTextureBytes: number, textures: number,
 *   normalization: Recorded|Record<string, Recorded>|null,
 *   timings: {compileMs: number, uploadMs: number, firstStepMs: number, trainMs: number, steps: number}}} RunRecord */

/** All but the normalization, which does not change and may be long. @param {Session} session @returns {Omit<RunRecord, "normalization">} */
export function runRecord(session) {
  const { progress } = session;
  const { renderer, software } = session.device.record;
  return {
    backend: "webgl2",
    renderer,
    software,
    planKey: session.planKey,
    validation: progress.validated,
    diverged: progress.diverged?.message ?? null,
    early_stopping: progress.stopping && {
      metric: progress.stopping.metric,
      best: progress.stopping.best?.[progress.stopping.metric] ?? null,
      best_step: progress.stopping.best?.step ?? null,
      best_epoch: progress.stopping.best && Math.ceil(progress.stopping.best.step / session.batches.stepsPerEpoch),
      stopped: progress.stopping.stopped,
      restored: progress.restored,
    },
    parameters: countParameters(session.plan),
    convolutions: session.plan.convolutions,
    drawsPerStep: drawCalls(session.executable.lowered.phases.train.flat()),
    glCallsPerStep: session.pipeline.glCallsPerStep,
    plannedTextureBytes: session.executable.lowered.bytes,
    peakTextureBytes: session.executable.tensors.bytes,
    textures: session.executable.lowered.textures.length,
    timings: { ...session.timings, steps: session.pipeline.steps },
  };
}
