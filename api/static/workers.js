// Workers on the dashboard: who can train now, and why a queued job waits.

import { label, make } from "./dom.js";
import { shortRenderer } from "./format.js";

/**
 * A worker as `GET /v1/workers` gives it.
 * @typedef {{id: string, host: string, queue: string, state: "starting" | "idle" | "busy" | "draining" | "broken" | "stopped",
 *   draining: boolean, renderer: string | null, software: boolean | null, fault: string | null, seen_at: string}} Worker
 */

/** A worker that was silent for longer counts as gone, in milliseconds; /v1/jobs/{id}/why says the same. */
const SEEN = 60_000;
/** @type {Record<string, [word: string, tone: string]>} */
const WORDS = {
  idle: ["ready", "good"], busy: ["busy", "busy"], starting: ["starting", ""], draining: ["draining", "warn"], broken: ["broken", "bad"],
};

/** Those that are there. @param {Worker[]} workers @param {Date} now */
export function present(workers, now) {
  return workers.filter(({ state, seen_at }) => state !== "stopped" && now.getTime() - new Date(seen_at).getTime() < SEEN);
}

/**
 * Why a queued job waits, in a few words.
 * @param {{queue: string, needs_hardware: boolean}} job
 * @param {Worker[]} workers all that are there
 */
export function waitingFor(job, workers) {
  const own = workers.filter((worker) => worker.queue === job.queue);
  const usable = own.filter(({ state, draining }) => !draining && state !== "broken" && state !== "draining");
  if (!own.length) return "no worker is running";
  if (usable.length && job.needs_hardware && usable.every(({ software }) => software)) return "no worker can take this job: it needs a GPU";
  if (usable.length) return "waiting for a worker";
  const broken = own.filter(({ state }) => state === "broken").length;
  return `no worker can take this job: ${broken === own.length ? "all broken" : broken ? "broken or draining" : "all draining"}`;
}

/** @param {Worker} worker @returns {string} one of WORDS */
const stateOf = ({ state, draining }) => (draining && state !== "broken" ? "draining" : state);

/**
 * How many are in each state on each device, in the order of WORDS.
 * @param {Worker[]} workers
 * @returns {Array<{state: string, device: string, software: boolean, count: number}>}
 */
export function groups(workers) {
  /** @type {Map<string, {state: string, device: string, software: boolean, count: number}>} */
  const found = new Map();
  for (const worker of workers) {
    const group = { state: stateOf(worker), device: worker.renderer ? shortRenderer(worker.renderer) : "", software: Boolean(worker.software) };
    const key = JSON.stringify(group);
    found.set(key, { ...group, count: (found.get(key)?.count ?? 0) + 1 });
  }
  const order = Object.keys(WORDS);
  return [...found.values()].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || a.device.localeCompare(b.device));
}

/**
 * Fill an element with the workers' states, and with what is wrong with the broken ones.
 * @param {HTMLElement} host
 * @param {Worker[]} workers those that are there
 */
export function showWorkers(host, workers) {
  host.replaceChildren(
    make("p", {}, make("strong", {}, workers.length === 1 ? "Worker" : "Workers"), " ",
      ...(workers.length ? groups(workers).map(({ state, device, software, count }) => make("span", { class: "worker" },
        label(WORDS[state][0], WORDS[state][1]), " ", count > 1 && `${count} × `, device, " ", software && label("software", "warn")))
        : [label("none is running", "warn"), " ", make("span", { class: "muted" }, "queued runs wait until one starts")])),
    ...workers.filter(({ state }) => state === "broken").map(({ id, fault }) =>
      make("p", { class: "fault-line" }, make("code", {}, id), " ", fault ?? "says no reason")));
}
