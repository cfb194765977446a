// How a job is shown wherever it appears: its state, progress, renderer and duration.

import { label, make } from "./dom.js";
import { formatCount, shortRenderer } from "./format.js";

/** @typedef {import("./api.js").Job} Job */

const TONES = { queued: "", running: "busy", succeeded: "good", failed: "bad", cancelled: "warn", aborted: "warn" };

/** @param {Job} job */
export function stateLabel(job) {
  const cancelling = job.state === "running" && job.cancel_requested_at;
  return label(cancelling ? "cancelling" : job.state, job.record?.warnings?.length ? "warn" : TONES[job.state]);
}

/** @param {Job} job @returns {Node} */
export function rendererLabel(job) {
  if (!job.renderer) return make("span", { class: "muted" }, "–");
  return make("span", { class: "renderer", title: job.renderer },
    shortRenderer(job.renderer), " ", job.software && label("software", "warn"));
}

/**
 * Set a progress bar; without a known end it shows that something happens.
 * @param {HTMLProgressElement} bar
 * @param {Job} job
 */
export function setProgress(bar, job) {
  bar.className = { succeeded: "done", failed: "bad" }[/** @type {string} */ (job.state)] ?? "";
  if (job.total_steps) {
    bar.max = job.total_steps;
    // Early stopping ends before the last step; one that waits to go on is not at the start.
    bar.value = job.state === "succeeded" ? bar.max : Math.max(job.step, job.resumed_from_step ?? 0);
  } else if (job.state === "running") {
    bar.removeAttribute("value");
  } else {
    bar.value = 0;
  }
}

/** @param {Job} job @param {string} [waiting] why it waits where it does */
export function progressText(job, waiting = "waiting for a worker") {
  if (job.state === "queued") return waiting;
  const [step, total] = [formatCount(job.step), job.total_steps && formatCount(job.total_steps)];
  if (job.kind === "predict") return total ? `${step} of ${total} rows` : `${step} rows`;
  if (job.state === "succeeded" && job.total_steps && job.step < job.total_steps) return `stopped early, after step ${step} of at most ${total}`;
  return total ? `step ${step} of ${total}` : `step ${step}`;
}

/**
 * Seconds from start to end, or to now while the job runs.
 * @param {Job} job
 * @param {Date} now
 */
export function durationOf(job, now) {
  if (!job.started_at) return null;
  const end = job.ended_at ? new Date(job.ended_at) : now;
  return Math.max((end.getTime() - new Date(job.started_at).getTime()) / 1000, 0);
}
