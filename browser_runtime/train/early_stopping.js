// Early stopping: watches a metric of the validations, and says when it has not improved for long enough. What it knows goes into checkpoints.
import { EngineError } from "../errors.js";
import { metricTypes } from "../nn/metrics.js";

/** @import { Point } from "./pipeline.js" */

/** What a run that stops by itself says of it. @typedef {{metric: string, best: number|null, best_step: number|null, best_epoch: number|null, stopped: boolean, restored: boolean}} StoppingRecord */

export class EarlyStopping {
  /** @param {{metric: string, patience: number, min_delta: number, restore_best: boolean}} options of the spec */
  constructor({ metric, patience, min_delta, restore_best }) {
    this.metric = /** @type {`val_${string}`} */ (metric);
    this.patience = patience;
    this.minDelta = min_delta;
    this.restoreBest = restore_best;
    const name = metric.slice("val_".length);
    this.smaller = name === "loss" || metricTypes[name].smaller === true;
    /** The best validation so far. @type {Point|null} */
    this.best = null;
    /** Validations since. */
    this.waited = 0;
    this.stopped = false;
  }

  /** @param {Point} point of a validation @returns {boolean} whether it is the best so far; NaN never is */
  see(point) {
    const value = point[this.metric];
    const best = this.best?.[this.metric];
    const gain = best === undefined ? Infinity : this.smaller ? best - value : value - best;
    // Of the first one only that it is a number: there is nothing to be better than.
    const improved = best === undefined ? !Number.isNaN(value) : gain > this.minDelta;
    if (improved) this.best = point;
    this.waited = improved ? 0 : this.waited + 1;
    if (this.waited >= this.patience) this.stopped = true;
    return improved;
  }

  /** @returns {string} what a checkpoint holds of it */
  get state() {
    const { best, waited, stopped } = this;
    return JSON.stringify({ best, waited, stopped }, (_, value) => (typeof value !== "number" || Number.isFinite(value) ? value : String(value)));
  }

  /** @param {string|undefined} text as `state` gave it @returns {() => void} goes on from there; nothing has changed before @throws {EngineError} */
  prepare(text) {
    /** @type {any} */
    let state;
    try {
      state = JSON.parse(text ?? "", (_, value) => (["NaN", "Infinity", "-Infinity"].includes(value) ? Number(value) : value));
    } catch {
      state = null;
    }
    if (state === null || !Number.isInteger(state.waited) || typeof state.stopped !== "boolean" || typeof state.best !== "object") {
      throw new EngineError("data_invalid", "checkpoint: it has no state of early stopping", { field: "checkpoint" });
    }
    return () => void Object.assign(this, state);
  }
}
