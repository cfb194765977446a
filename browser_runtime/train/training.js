// Training: the loop of a run: submits chunks of steps ahead of the GPU, and takes in what they report.
import { EngineError } from "../errors.js";

/** @import { Point, Report } from "./pipeline.js" */
/** @import { Session } from "./session.js" */

/** Chunks that are submitted and not read, at most. */
const IN_FLIGHT = 2;
/** Between two questions for errors, each of which the GPU process has to answer before it is given more to do. */
const CHECK_MS = 80;

/**
 * Trains up to the step `target`, or until a validation ends the run.
 * @param {Session} session @param {number} target
 * @param {{onTelemetry?: (points: Point[]) => void|Promise<void>, signal?: AbortSignal}} options
 * @throws {EngineError} aborted, between two steps; non_finite_loss
 */
export async function train(session, target, { onTelemetry, signal }) {
  const { device, executable, pipeline, progress, timings } = session;
  const started = performance.now();
  /** Chunks that were submitted, and those of them that were read. @type {Promise<Report>[]} */
  const flying = [];
  /** @type {Report[]} */
  const landed = [];
  /** When a chunk was read last, and when the device was asked last. */
  let last = started;
  let checked = started;
  // A read waits until the GPU process has taken all commands, and leaves it without any until the next chunk is submitted: what the chunk
  // reports is taken in behind that.
  const land = async () => {
    const report = await /** @type {Promise<Report>} */ (flying.shift());
    landed.push(report);
    const now = performance.now();
    pipeline.adapt(report.flights.reduce((sum, { count }) => sum + count, 0), now - last);
    last = now;
    if (flying.length > 0 && now - checked < CHECK_MS) return;
    device.check();
    checked = now;
  };
  const takeIn = async () => {
    for (let report = landed.shift(); report; report = landed.shift()) {
      const chunk = pipeline.points(report);
      // What a device failed to draw is no divergence.
      if (chunk.broken) device.check();
      progress.receive(chunk);
      await progress.show(onTelemetry);
    }
  };
  try {
    await progress.show(onTelemetry);
    while (!progress.stopped && pipeline.wants(target)) {
      if (signal?.aborted) throw new EngineError("aborted", "training was cancelled");
      session.goesOn();
      flying.push(pipeline.submit(target));
      await takeIn();
      if (timings.firstStepMs === 0) {
        await land();
        await takeIn();
        timings.firstStepMs = performance.now() - started;
        // A task later: whoever took one step has its end first.
        setTimeout(() => executable.compileRest());
      }
      // What a validation says may end the run: no step is taken before it is known.
      const most = pipeline.waits && pipeline.justValidated ? 1 : IN_FLIGHT;
      while (flying.length >= most) await land();
      if (most === 1) await takeIn();
    }
    await takeIn();
    while (flying.length) {
      await land();
      await takeIn();
    }
  } catch (error) {
    // Whatever ended the run is what the caller hears of: a device that fails now is told by the next call.
    if (!session.disposed) await settle(session, [...landed, ...flying]).catch(() => {});
    if (error instanceof EngineError && error.code === "aborted") await progress.handOver(onTelemetry);
    throw error;
  } finally {
    // What was submitted is being read: let that end before the session is used, or disposed of.
    await Promise.allSettled(flying);
  }
}

/**
 * Ends a run that is broken off between two steps, with all that it submitted counted, so that another one can go on from there.
 * @param {Session} session @param {(Report|Promise<Report>)[]} reports of its chunks
 */
async function settle({ device, pipeline, progress }, reports) {
  for (;;) {
    while (reports.length > 0) {
      const report = await /** @type {Report|Promise<Report>} */ (reports.shift());
      device.check();
      progress.receive(pipeline.points(report));
    }
    if (pipeline.submitted === 0) return;
    reports.push(pipeline.submit(pipeline.step + 1));
  }
}
