// The page of one run: hears its events and brings each part of the page up to date.

import { ApiError, changeJob, FINAL_STATES, getCurves, getDataset, getDiagnostics, getJob, getWhy, predictionsUrl, watchJob, weightsUrl } from "./api.js";
import { showAttempts } from "./attempts.js";
import { Chart } from "./curves.js";
import { byId, fillList, label, make, showConnection, showProblem } from "./dom.js";
import { formatBytes, formatCount, formatDuration, formatNumber, formatPercent } from "./format.js";
import { durationOf, progressText, rendererLabel, setProgress, stateLabel } from "./job.js";
import { nonFiniteNote, showMeasures } from "./measures.js";
import { showModel } from "./model.js";
import { judge, showReport } from "./report.js";
import { showValidation } from "./validation.js";

/** @typedef {import("./api.js").Job} Job */
/** @typedef {import("./curves.js").Curve} Curve */

/** Events come in bursts: at most one refresh in so many milliseconds. */
const REFRESH = 400;

const id = byId("run").dataset.job ?? "";
/** @type {import("./curves.js").Series[]} */
const LOSSES = [
  { key: "loss", title: "training loss", tone: "train" },
  { key: "val_loss", title: "validation loss", tone: "validation" },
];
const loss = new Chart(byId("loss-chart"), LOSSES, "Loss by training step");
let hasReport = false;
let hasModel = false;
/** The data set that is shown. @type {string | null} */
let datasetId = null;
/** What its targets number. @type {string[]} */
let classes = [];

/** @param {Job} job */
function showJob(job) {
  const isPrediction = job.kind === "predict";
  document.title = `${job.name || job.id} · ${job.state} · texelgrad`;
  byId("name").textContent = job.name || "Unnamed run";
  byId("identity").textContent = job.id;
  const begun = job.resumed_from_step;
  byId("origin").replaceChildren(...(begun !== null && job.parent_id ? ["Continues run ", make("a", { href: `/runs/${job.parent_id}` }, job.parent_id), ` from step ${formatCount(begun)}`] : []));
  byId("tags").replaceChildren(...Object.entries(job.tags ?? {}).map(([name, value]) => label(`${name}: ${value}`)));
  const state = stateLabel(job);
  if (byId("state").textContent !== state.textContent) byId("state").replaceChildren(state);

  byId("failure").hidden = !job.message || job.state === "succeeded";
  byId("failure-cause").textContent = (job.cause ?? "").replaceAll("_", " ");
  byId("failure-message").textContent = job.message ?? "";

  const warnings = job.record?.warnings ?? [];
  byId("warnings").hidden = warnings.length === 0;
  byId("warnings").textContent = warnings.map((/** @type {{message: string}} */ { message }) => `${message}.`).join(" ");

  setProgress(byId("progress", HTMLProgressElement), job);
  if (job.state !== "queued") byId("progress-text").textContent = progressText(job);
  showAttempts(byId("tries"), job);
  byId("cancel").hidden = FINAL_STATES.has(job.state);
  byId("cancel", HTMLButtonElement).disabled = Boolean(job.cancel_requested_at);
  byId("resume").hidden = job.resumable_from_step === null;
  byId("resume").textContent = `Resume from step ${formatCount(job.resumable_from_step)}`;
  for (const format of /** @type {const} */ (["safetensors", "npz", "onnx", "tfjs"])) {
    const link = byId(format, HTMLAnchorElement);
    link.href = weightsUrl(id, format);
    link.hidden = job.state !== "succeeded" || isPrediction;
  }

  const { metrics } = job;
  const stopping = job.record?.early_stopping;
  fillList(byId("tiles"), [
    ["Best epoch", stopping?.restored && stopping.best_epoch && formatCount(stopping.best_epoch)],
    ["Validation loss", "val_loss" in metrics && formatNumber(metrics.val_loss)],
    ["Validation accuracy", "val_accuracy" in metrics && formatPercent(metrics.val_accuracy)],
    [stopping?.restored ? "Last loss" : "Loss", "loss" in metrics && formatNumber(metrics.loss)],
    ["Rows", isPrediction && formatCount(job.step)],
    ["Duration", formatDuration(durationOf(job, new Date()))],
    ["Backend", job.backend],
    ["Renderer", rendererLabel(job)],
  ], true);
  byId("kind").hidden = !isPrediction;
  byId("report-card").hidden = isPrediction;
  byId("model-heading").textContent = isPrediction ? "Model" : "Model and training";
  if (!hasModel) showModel(byId("model"), job.spec);
  if (!hasModel) byId("spec").textContent = JSON.stringify(job.spec, null, 2);
  hasModel = true;
  showTimings(job);
  byId("predictions", HTMLAnchorElement).href = predictionsUrl(id);
  byId("predictions").hidden = !isPrediction || job.state !== "succeeded";
  byId("run").hidden = false;
}

/** @param {Job} job */
function showTimings({ attempts, record, state, kind }) {
  byId("timings-empty").hidden = Boolean(record?.timings);
  byId("timings-empty").textContent = FINAL_STATES.has(state) ? "This run recorded none." : "Known once the run has ended.";
  if (!record?.timings) return; // while it runs, only how Chromium was started is known
  const { timings } = record;
  const ms = (/** @type {unknown} */ value) => (typeof value === "number" ? formatDuration(value / 1000) : null);
  const trains = kind !== "predict";
  const resumed = attempts.at(-1)?.resumed_from_step; // what was timed is the last try
  const perStep = timings.steps ? timings.trainMs / timings.steps : null;
  fillList(byId("timings"), [
    ["Compile", ms(timings.compileMs)],
    ["Data upload", ms(timings.uploadMs)],
    ["First step", trains && ms(timings.firstStepMs)],
    ["Training", trains && ms(timings.trainMs)],
    ["Precision report", timings.reportMs ? ms(timings.reportMs) : null],
    ["Checkpoints", timings.checkpointMs ? ms(timings.checkpointMs) : null],
    ["Saving", ms(timings.saveMs)],
    ["One step", perStep === null ? null : `${formatNumber(perStep, 3)} ms`],
    ["Steps", trains && `${formatCount(timings.steps)}${resumed ? `, from step ${formatCount(resumed)}` : ""}`],
    ["Parameters", formatCount(record.parameters)],
    ["Draws a step", trains && formatCount(record.drawsPerStep)],
    ...(trains ? convolutionFacts(record) : []),
    ["GL calls a step", trains && formatCount(Math.round(record.glCallsPerStep))],
    ["Textures, peak", formatBytes(record.peakTextureBytes)],
    ["Chromium", record.launch && `${record.launch.chromium}, ${record.launch.recipe}`],
  ]);
  byId("plan-key").textContent = record.planKey ?? "";
  byId("plan").hidden = !record.planKey;
}

/** Which algorithm each convolution took, and what both cost for a sample. @param {any} record @returns {[string, string][]} */
function convolutionFacts({ convolutions = [] }) {
  const cost = (/** @type {any} */ { multiplyAdds, loads, stores, bytes }) =>
    `${formatCount(multiplyAdds)} multiply-adds, ${formatCount(loads + stores)} texels, ${bytes === null ? "too large" : formatBytes(bytes)}`;
  return convolutions.map((/** @type {any} */ { layer, algorithm, direct, im2col }) => {
    const ways = [`direct: ${cost(direct)}`, ...(im2col ? [`im2col: ${cost(im2col)}`] : [])];
    return [`Convolution ${layer}`, `${algorithm} (${ways.join("; ")})`];
  });
}

/** @param {Record<string, Curve>} curves */
function showCurves(curves) {
  const charts = byId("charts");
  charts.hidden = Object.keys(curves).length === 0; // so of predictions, and of runs that have not begun
  if (charts.hidden) return;
  loss.show(curves);
  byId("log-scale", HTMLInputElement).checked = loss.logarithmic;
  byId("loss-note").textContent = nonFiniteNote(LOSSES, curves);
  byId("loss-note").hidden = !byId("loss-note").textContent;
  showMeasures(charts, curves);
}

/** @param {string} wanted */
async function showDataset(wanted) {
  const dataset = await getDataset(wanted);
  datasetId = wanted;
  classes = dataset?.arrays.y?.stats.classes ?? [];
  fillList(byId("dataset"), [
    ["Data set", dataset ? dataset.name || "unnamed" : "has been deleted"],
    ["Data set id", make("code", {}, wanted)],
    ["Rows", dataset && formatCount(dataset.rows)],
  ]);
  byId("dataset").hidden = false;
}

/** Why there is no precision report. @param {Job} job */
function missingReport({ spec, state }) {
  if (spec.diagnostics === "none") return "This job asked for none.";
  return FINAL_STATES.has(state) ? "This run ended before its device was measured." : "The device is measured soon after the start.";
}

async function refresh() {
  const job = await getJob(id);
  showJob(job);
  if (job.dataset_id && job.dataset_id !== datasetId) await showDataset(job.dataset_id);
  showValidation(job, classes);
  if (job.state === "queued") byId("progress-text").textContent = await getWhy(id);
  const wantsReport = !hasReport && job.attempts.some(({ measured }) => measured);
  const [curves, report] = await Promise.all([getCurves(id), wantsReport ? getDiagnostics(id) : null]);
  showCurves(curves);
  if (report) {
    hasReport = true;
    const { tone, text } = judge(report);
    byId("verdict").replaceChildren(label(text, tone));
    showReport(byId("report"), report);
  } else if (!hasReport) {
    byId("report").replaceChildren(make("p", { class: "muted" }, missingReport(job)));
  }
  return job;
}

/**
 * A function that runs `task` soon, never twice at once and not more often than every REFRESH milliseconds.
 * @param {() => Promise<unknown>} task
 */
function throttled(task) {
  let isWanted = false;
  let isRunning = false;
  return async () => {
    isWanted = true;
    if (isRunning) return;
    isRunning = true;
    while (isWanted) {
      isWanted = false;
      await task();
      await new Promise((resolve) => setTimeout(resolve, REFRESH));
    }
    isRunning = false;
  };
}

/** @param {"cancel" | "resume"} action of its button @param {(job: Job) => unknown} then */
function onPress(action, then) {
  const button = byId(action, HTMLButtonElement);
  button.addEventListener("click", () => {
    button.disabled = true;
    changeJob(id, action).then(then).catch((error) => {
      button.disabled = false;
      showProblem(error);
    });
  });
}

async function main() {
  byId("log-scale", HTMLInputElement).addEventListener("change", (event) =>
    loss.setLogarithmic(/** @type {HTMLInputElement} */ (event.target).checked));
  onPress("cancel", refresh);
  onPress("resume", (made) => location.assign(`/runs/${made.id}`));

  const job = await refresh();
  if (FINAL_STATES.has(job.state)) return;
  const update = throttled(async () => {
    try {
      const { state } = await refresh();
      if (!FINAL_STATES.has(state)) return;
      stop();
      showConnection("");
    } catch {
      showConnection("connection lost, trying again", "bad");
    }
  });
  const stop = watchJob(id, {
    onChange: update,
    onConnection: (isUp) => {
      showConnection(isUp ? "live" : "connection lost, trying again", isUp ? "good" : "bad");
      // What happened while we were not listening, the end of the run included.
      update();
    },
  });
}

main().catch((error) => {
  showProblem(error instanceof ApiError && error.status === 404 ? "There is no such run." : error);
});
