// The tries at a job in words: how each ended and why, and how many are left.

import { label, make } from "./dom.js";
import { formatCount } from "./format.js";

/**
 * @typedef {{number: number, state: string, cause: string | null, message: string | null, worker_id: string,
 *   resumed_from_step: number | null, not_bit_exact: boolean | null, measured: boolean}} Attempt
 * @typedef {import("./api.js").Job} Job
 */

/** Causes that use up a try; the others end the job, or are no fault of it. texelgrad/domain.py decides. */
export const COUNTED = new Set(["context_lost", "gl_error", "page_crashed", "runner_died", "stalled", "lease_expired", "worker_died"]);
/** @type {Record<string, string>} */
const TONES = { succeeded: "good", failed: "bad", lost: "warn", cancelled: "warn" };

/** @param {number} count @param {string} one @param {string} many */
const plural = (count, one, many) => `${formatCount(count)} ${count === 1 ? one : many}`;

/**
 * What the tries mean for a job: how many were lost, how many more it may have.
 * @param {Attempt[]} attempts
 * @param {number} most tries that it may use up
 * @param {import("./api.js").State} state
 */
export function summary(attempts, most, state) {
  const used = attempts.filter(({ cause }) => COUNTED.has(cause ?? "")).length;
  const free = attempts.filter((each) => each.state === "lost" && !COUNTED.has(each.cause ?? "")).length;
  const left = Math.max(most - used - (state === "running" ? 1 : 0), 0);
  const sentences = [
    used && `${plural(used, "try was", "tries were")} lost.`,
    free && `${plural(free, "lost try does", "lost tries do")} not count: not the job's fault.`,
    (state === "queued" || state === "running") && `${left ? plural(left, "retry", "retries") : "No retries"} left.`,
  ];
  return sentences.filter(Boolean).join(" ");
}

/** @param {Attempt} attempt */
function line({ number, state, cause, message, worker_id, resumed_from_step, not_bit_exact }) {
  const why = cause && cause !== state && cause !== "completed" ? cause.replaceAll("_", " ") : "";
  return make("li", {},
    make("strong", {}, `Try ${number}`), " ", label(state, TONES[state] ?? "busy"), " ",
    [why, message].filter(Boolean).join(": "), " ",
    make("span", { class: "muted" }, `on ${worker_id}`,
      resumed_from_step ? `, from step ${formatCount(resumed_from_step)}` : "", not_bit_exact ? ", not bit-exact" : ""));
}

/**
 * Fill an element with the tries.
 * @param {HTMLElement} host
 * @param {Job} job
 */
export function showAttempts(host, { attempts, max_attempts, state, ended_at }) {
  host.hidden = !attempts.length || (Boolean(ended_at) && attempts.length === 1); // then the page has said it all
  host.replaceChildren(
    make("ul", { class: "attempts" }, ...attempts.map(line)),
    make("p", { class: "hint" }, summary(attempts, max_attempts, state)));
}
