// Charts of what a run measures besides its loss: the norm of its gradient, and metrics of the validation rows: shares of 1 together, every
// other metric by itself.

import { Chart, firstNonFinite } from "./curves.js";
import { make } from "./dom.js";
import { formatCount, formatNumber } from "./format.js";

/** @typedef {import("./curves.js").Curve} Curve @typedef {import("./curves.js").Series} Series */

const OF_VALIDATION = "of the validation rows";

/** `of`: what is measured. @type {Array<{title: string, of: string, share: boolean, series: Series[]}>} */
const GROUPS = [
  {
    title: "Scores",
    of: OF_VALIDATION,
    share: true,
    series: [
      { key: "val_accuracy", title: "accuracy", tone: "validation" },
      { key: "val_top_k_accuracy", title: "top-k accuracy", tone: "second" },
      { key: "val_precision", title: "precision", tone: "third" },
      { key: "val_recall", title: "recall", tone: "fourth" },
      { key: "val_f1", title: "F1", tone: "fifth" },
      { key: "val_auc", title: "AUC", tone: "sixth" },
    ],
  },
  ...["R2", "MAE", "MSE"].map((title) => ({
    title,
    of: OF_VALIDATION,
    share: false,
    series: [{ key: `val_${title.toLowerCase()}`, title, tone: /** @type {const} */ ("validation") }],
  })),
  { title: "Gradient norm", of: "of each step", share: false, series: [{ key: "gradient_norm", title: "norm of the gradient", tone: "train" }] },
];

/** Those that are on the page, by the title of their group. @type {Map<string, {chart: Chart, note: HTMLElement}>} */
const shown = new Map();

/**
 * What to say of values that no chart has a place for.
 * @param {Series[]} series @param {Record<string, Curve>} curves @returns {string} empty where all are finite
 */
export function nonFiniteNote(series, curves) {
  return series.flatMap(({ key, title }) => {
    const found = curves[key] && firstNonFinite(curves[key]);
    return found ? [`The ${title} is ${formatNumber(found.value)} at step ${formatCount(found.step)}, marked in the chart.`] : [];
  }).join(" ");
}

/** @param {HTMLElement} host of the cards @param {{title: string, of: string, share: boolean}} group @param {Series[]} series those that are there */
function card(host, { title, of, share }, series) {
  const id = title.toLowerCase().replaceAll(" ", "-");
  const place = make("div", { id: `${id}-chart`, class: "chart" });
  const note = make("p", { id: `${id}-note`, class: "note", hidden: true });
  const heading = series.length === 1 ? series[0].title : title;
  host.append(make("section", { class: "card", "aria-labelledby": `${id}-heading` },
    make("div", { class: "card-head" }, make("h2", { id: `${id}-heading` }, heading[0].toUpperCase() + heading.slice(1))), place, note));
  return { chart: new Chart(place, series, `${heading} ${of} by training step`, { share, raw: !share }), note };
}

/**
 * Brings the charts up to date; those whose curves are not there are not on the page.
 * @param {HTMLElement} host @param {Record<string, Curve>} curves
 */
export function showMeasures(host, curves) {
  for (const group of GROUPS) {
    const { title, series } = group;
    const present = series.filter(({ key }) => curves[key]?.steps.length);
    if (!present.length) continue;
    const made = shown.get(title) ?? card(host, group, present);
    shown.set(title, made);
    made.chart.show(curves);
    made.note.textContent = nonFiniteNote(series, curves);
    made.note.hidden = !made.note.textContent;
  }
}
