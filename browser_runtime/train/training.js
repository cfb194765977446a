// Training: the loop of a run: submits chunks of steps ahead of the GPU, and takes in what they report.
import { EngineError } from "../errors.js";
import { IN_FLIGHT } from "./pipeline.js";

/** @import { Point, Report } from "./pipeline.js" */
/** @import { Session } from "./session.js" */

/**
 * Trains up to the step `target`, or until a validation ends the run.
 * @param {Session} session @param {number} target
 * @param {{onTelemetry?: (points: Point[]) => void|Promise<void>, signal?: AbortSignal}} options
 * @throws {EngineError} aborted, between two steps; non_finite_loss
 */
export async function train(session, target, { onTelemetry, signal }) {
  const { device, executable, pipeline, progress, timings } = session;
  const started = performance.now();
  /** @type {Promise<Report>[]} */
  const flying = [];
  let last = started;
  const land = async () => {
    const report = await /** @type {Promise<Report>} */ (flying.shift());
    device.check();
    const now = performance.now();
    pipeline.adapt(report.flights.reduce((sum, { count }) => sum + count, 0), now - last);
    last = now;
    progress.receive(pipeline.points(report));
    await progress.show(onTelemetry);
  };
  try {
    await progress.show(onTelemetry);
    while (!progress.stopped && pipeline.wants(target)) {
      if (signal?.aborted) throw new EngineError("aborted", "training was cancelled");
      flying.push(pipeline.submit(target));
      if (timings.firstStepMs === 0) {
        await land();
        timings.firstStepMs = performance.now() - started;
        executable.compileRest();
      }
      // What a validation says may end the run: no step is taken before it is known.
      const most = pipeline.waits && pipeline.justValidated ? 1 : IN_FLIGHT;
      while (flying.length >= most) await land();
    }
    while (flying.length) await land();
  } catch (error) {
    // Whatever ended the run is what the caller hears of: a device that fails now is told by the next call.
    await settle(session, flying).catch(() => {});
    if (error instanceof EngineError && error.code === "aborted") await progress.handOver(onTelemetry);
    throw error;
  } finally {
    // What was submitted reads telemetry lines: let it end before anybody reuses them.
    await Promise.allSettled(flying);
  }
}

/**
 * Ends a run that is broken off between two steps, with all that it submitted counted, so that another one can go on from there.
 * @param {Session} session @param {Promise<Report>[]} flying
 */
async function settle({ device, pipeline, progress }, flying) {
  for (;;) {
    while (flying.length > 0) {
      const report = await /** @type {Promise<Report>} */ (flying.shift());
      device.check();
      progress.receive(pipeline.points(report));
    }
    if (pipeline.submitted === 0) return;
    flying.push(pipeline.submit(pipeline.step + 1));
  }
}
