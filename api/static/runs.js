// The table of runs: newest first, refreshed while the page is visible.

import { listJobs, listWorkers } from "./api.js";
import { byId, make, showConnection, showProblem } from "./dom.js";
import { formatAge, formatCount, formatDuration, formatNumber, formatPercent } from "./format.js";
import { durationOf, progressText, rendererLabel, setProgress, stateLabel } from "./job.js";
import { present, showWorkers, waitingFor } from "./workers.js";

/** @typedef {import("./api.js").Job} Job */

/** Between two refreshes, in milliseconds: quick while something runs. */
const REFRESH = { busy: 1000, idle: 4000 };

/** Older pages are loaded once and kept; the newest page is what refreshes. @type {Map<string, Job>} */
const jobs = new Map();
/** @type {string | null} */
let next = null;
let hasLoaded = false;
/** Those that are there. @type {import("./workers.js").Worker[]} */
let workers = [];
/** What the table shows, to leave it alone (and a reader's selection in it) while that is the same. */
let shownState = "";

/** @param {Job} job @param {Date} now */
function row(job, now) {
  const bar = /** @type {HTMLProgressElement} */ (make("progress", { "aria-label": `Progress of ${job.name || job.id}` }));
  setProgress(bar, job);
  const created = new Date(job.created_at);
  return make("tr", {},
    make("td", {}, stateLabel(job)),
    make("td", { class: "run" },
      make("a", { class: "name", href: `/runs/${encodeURIComponent(job.id)}` }, job.name || job.id),
      job.name && make("small", {}, job.id)),
    make("td", { class: "progress" }, bar, make("small", {}, progressText(job, waitingFor(job, workers))),
      job.resumed_from_step !== null && make("small", {}, `from step ${formatCount(job.resumed_from_step)}`)),
    make("td", { class: "number", "data-label": "Loss" }, formatNumber(job.metrics.loss)),
    make("td", { class: "number", "data-label": "Val. accuracy" }, formatPercent(job.metrics.val_accuracy)),
    make("td", { "data-label": "Renderer" }, rendererLabel(job)),
    make("td", { class: "number", "data-label": "Duration" }, formatDuration(durationOf(job, now))),
    make("td", { class: "created", "data-label": "Created" }, make("time", { datetime: job.created_at, title: created.toLocaleString("en") }, formatAge(created, now))));
}

function render() {
  const now = new Date();
  const shown = [...jobs.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
  const running = shown.filter((job) => job.state === "running").length;
  const queued = shown.filter((job) => job.state === "queued").length;
  // Durations of running jobs change by the second, ages by the minute.
  const state = JSON.stringify([shown, next, workers.map(({ seen_at, ...told }) => told), Math.floor(now.getTime() / (running ? 1000 : 60_000))]);
  if (state === shownState) return;
  shownState = state;

  const body = byId("runs");
  const focused = document.activeElement instanceof HTMLAnchorElement ? document.activeElement.href : null;
  body.replaceChildren(...shown.map((job) => row(job, now)));
  [...body.querySelectorAll("a")].find((link) => link.href === focused)?.focus();
  body.setAttribute("aria-busy", "false");
  showWorkers(byId("workers"), workers);
  byId("empty").hidden = shown.length > 0;
  byId("more").hidden = next === null;
  byId("summary").textContent = shown.length ? `${running} running, ${queued} queued` : "";
}

/** @param {string | null} cursor */
async function load(cursor) {
  const [page, all] = await Promise.all([listJobs(cursor), listWorkers()]);
  workers = present(all, new Date());
  for (const job of page.jobs) jobs.set(job.id, job);
  if (cursor !== null || !hasLoaded) next = page.next;
  hasLoaded = true;
  render();
}

async function refresh() {
  if (!document.hidden) {
    try {
      await load(null);
      showProblem(null);
      showConnection("live", "good");
    } catch (error) {
      showProblem(hasLoaded ? null : error);
      showConnection("connection lost, trying again", "bad");
    }
  }
  const busy = [...jobs.values()].some((job) => job.state === "running" || job.state === "queued");
  setTimeout(refresh, busy ? REFRESH.busy : REFRESH.idle);
}

byId("example").textContent = `texelgrad --url ${location.origin} train examples/seed_demo.json`;
byId("more").addEventListener("click", () => load(next).catch(showProblem));
document.addEventListener("visibilitychange", () => { if (!document.hidden) load(null).catch(() => {}); });
refresh();
