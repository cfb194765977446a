// Progress: what training has reported so far: points for the caller, the best validation with its weights, whether the loss is still finite.
import { EngineError } from "../errors.js";
import { divergence } from "./divergence.js";
import { EarlyStopping } from "./early_stopping.js";
import { readWeights, writeWeights } from "./weights.js";

/** @import { Executable } from "../backends/webgl2/executable.js" */
/** @import { Plan } from "../plan/plan.js" */
/** @import { Point } from "./pipeline.js" */
/** @import { Weights } from "./weights.js" */

/** Losses that diagnostics compare with a float64 run. */
export const FIRST_LOSSES = 10;

export class Progress {
  /** @param {{spec: any, plan: Plan, executable: Executable, totalSteps: number}} parts */
  constructor({ spec, plan, executable, totalSteps }) {
    this.spec = spec;
    this.totalSteps = totalSteps;
    this.plan = plan;
    this.executable = executable;
    this.stopsAtNonFinite = spec.numerics.on_nonfinite === "stop";
    const { early_stopping: options } = spec.train;
    this.stopping = options && new EarlyStopping(options);
    /** The weights of the best validation, where they will be wanted. @type {Weights|null} */
    this.bestWeights = null;
    /** Whether they are the weights now. */
    this.restored = false;
    /** The last validation, or the one whose weights were restored. @type {Point|null} */
    this.validated = null;
    /** Points of the curve that the caller has not seen. @type {Point[]} */
    this.unseen = [];
    /** The first point whose loss is not finite. @type {Point|null} */
    this.broken = null;
    /** The last point before it whose loss was. @type {Point|null} */
    this.sound = null;
    /** @type {number[]} */
    this.firstLosses = [];
  }

  /** Whether a validation ended the run. */
  get stopped() {
    return this.stopping?.stopped === true;
  }

  /** The weights are no longer what the steps so far made of the first ones. */
  weightsChanged() {
    this.firstLosses.length = 0;
    this.broken = null;
    this.sound = null;
  }

  /** Where training diverged and what may help; null while its losses are finite. */
  get diverged() {
    return this.broken && divergence(this.spec, this.totalSteps, this.broken, this.sound);
  }

  /** Goes on from a checkpoint. @param {Weights|null} bestWeights */
  restart(bestWeights) {
    this.bestWeights = bestWeights;
    this.restored = false;
    this.validated = null;
    this.unseen.length = 0;
    this.weightsChanged();
  }

  /** Takes the points of a chunk, and keeps them until they are shown. @param {{points: Point[], broken: Point|undefined}} chunk */
  receive({ points, broken }) {
    for (const point of points) if (point.val_loss !== undefined) this.see(point);
    for (const { step, loss } of points) {
      // Only those that follow from `initialWeights`, without a gap.
      if (loss !== undefined && step <= FIRST_LOSSES && step === this.firstLosses.length + 1) this.firstLosses.push(loss);
    }
    this.broken ??= broken ?? null;
    const end = this.broken?.step ?? Infinity;
    this.sound = points.findLast(({ step, loss }) => loss !== undefined && step < end) ?? this.sound;
    const last = this.stopsAtNonFinite ? end : Infinity;
    this.unseen.push(...points.filter(({ step }) => step <= last));
  }

  /** @param {((points: Point[]) => void|Promise<void>)|undefined} onTelemetry */
  async handOver(onTelemetry) {
    const points = this.unseen.splice(0);
    if (points.length > 0) await onTelemetry?.(points);
  }

  /** @param {((points: Point[]) => void|Promise<void>)|undefined} onTelemetry @throws {EngineError} non_finite_loss where training diverged */
  async show(onTelemetry) {
    await this.handOver(onTelemetry);
    if (!this.broken || !this.diverged || !this.stopsAtNonFinite) return;
    const { message, field } = this.diverged;
    throw new EngineError("non_finite_loss", message, { field, detail: { step: this.broken.step, loss: String(this.broken.loss) } });
  }

  /** @param {Point} point of a validation; no later step has been submitted where the run may stop early */
  see(point) {
    this.validated = point;
    if (this.stopping?.see(point) && this.stopping.restoreBest) this.bestWeights = readWeights(this.plan, this.executable, "");
  }

  /** A run that has ended leaves the weights of its best validation. */
  restoreBest() {
    if (!this.bestWeights || this.restored) return;
    writeWeights(this.plan, this.executable, this.bestWeights, "");
    this.restored = true;
    this.validated = /** @type {EarlyStopping} */ (this.stopping).best;
  }
}
