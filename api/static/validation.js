// What a run measured of its validation rows: the metrics of its weights, and which of the classes were taken for which.

import { byId, fillList, make } from "./dom.js";
import { formatCount, formatNumber } from "./format.js";

/** @param {number[][]} matrix rows of a class, by what they were said to be @param {string[]} names theirs, if any */
function table(matrix, names) {
  const classes = matrix.map((_, n) => names[n] ?? String(n));
  const cell = (/** @type {number} */ count, /** @type {boolean} */ right) =>
    make("td", { class: count === 0 ? "muted" : right ? "right" : "" }, formatCount(count));
  return make("table", { class: "matrix" },
    make("caption", {}, "Rows of each class (down) by what they were said to be (across)"),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, ""), ...classes.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...matrix.map((counts, n) => make("tr", {}, make("th", { scope: "row" }, classes[n]), ...counts.map((count, m) => cell(count, n === m))))));
}

/** @type {Record<string, string>} */
const SHORT = { f1: "F1", auc: "AUC", r2: "R2", mae: "MAE", mse: "MSE" };

/** What a metric is called. @param {string} key such as val_top_k_accuracy */
function titleOf(key) {
  const name = key.replace("val_", "");
  return SHORT[name] ?? (name[0].toUpperCase() + name.slice(1)).replaceAll("_", " ");
}

/** @param {import("./api.js").Job} job @param {string[]} classes names, if any */
export function showValidation({ record }, classes) {
  const { validation, early_stopping: stopping } = record ?? {};
  byId("validation").hidden = !validation;
  if (!validation) return;
  const { step, val_confusion_matrix: matrix, ...metrics } = validation;
  fillList(byId("validation-metrics"), [
    ["After step", formatCount(step)],
    ...Object.entries(metrics).map(([name, value]) => /** @type {[string, string]} */ ([titleOf(name), formatNumber(value)])),
  ], true);
  byId("stopping").textContent = [
    stopping?.stopped && `Stopped early: ${stopping.metric} had not improved since step ${formatCount(stopping.best_step)}.`,
    stopping?.restored && `The weights are those of step ${formatCount(stopping.best_step)}, the best.`,
  ].filter(Boolean).join(" ");
  byId("matrix").replaceChildren(...(matrix ? [table(matrix, classes)] : []));
}
