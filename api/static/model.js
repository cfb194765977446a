// The job's spec for people: the layers as a table, how it trains as a list.

import { fillList, make } from "./dom.js";
import { formatCount } from "./format.js";

/** Of a layer: shown in columns of their own, so not among its options. */
const COLUMNS = new Set(["type", "name", "units", "filters", "activation"]);
/** Options that every layer has; only another value is worth a reader's time. @type {Record<string, unknown>} */
const USUAL = { bias_init: "zeros", use_bias: true, trainable: true, lr_multiplier: 1 };

/** Pairs of sizes as 3 × 3, edges as 1 0 / 2 1, names with commas. @param {unknown[]} items @returns {string} */
function listed(items) {
  if (items.every(Array.isArray)) return items.map((item) => item.join(" ")).join(" / ");
  return items.join(items.length === 2 && items.every((item) => typeof item === "number") ? " × " : ", ");
}

/** @param {unknown} value @returns {string} */
function inline(value) {
  if (Array.isArray(value)) return listed(value);
  if (value === null || typeof value !== "object") return String(value);
  const { type, ...rest } = /** @type {Record<string, unknown>} */ (value);
  const options = Object.entries(rest).filter(([, option]) => option !== null).map(([name, option]) => `${name} ${inline(option)}`);
  return [type, options.join(", ")].filter(Boolean).join(" · ");
}

/** @param {Record<string, unknown>} layer @param {number} index */
function layerRow(layer, index) {
  const options = Object.entries(layer).filter(([name, value]) => !COLUMNS.has(name) && value !== null && USUAL[name] !== value);
  return make("tr", {},
    make("td", { class: "number" }, String(index + 1)),
    make("td", {}, String(layer.type), " ", layer.name ? make("span", { class: "muted" }, String(layer.name)) : null),
    make("td", { class: "number", "data-label": "Units" }, String(layer.units ?? layer.filters ?? "")),
    make("td", { "data-label": "Activation" }, String(layer.activation ?? "")),
    make("td", { class: "muted" }, options.map(([name, value]) => `${name} ${inline(value)}`).join(", ")));
}

/** Which rows validate. @param {Record<string, any>|undefined} validation @returns {string|false} */
function validationOf(validation) {
  if (validation?.rows) {
    const count = validation.rows.reduce((/** @type {number} */ sum, /** @type {any} */ item) => sum + (typeof item === "number" ? 1 : item[1] - item[0]), 0);
    return count === 1 ? "1 named row" : `${formatCount(count)} named rows`;
  }
  if (!validation?.fraction) return false;
  return `${Math.round(100 * validation.fraction)} % of the rows${validation.stratify ? ", stratified by class" : ""}`;
}

/** @param {number} lr @param {Record<string, any>|undefined} schedule @returns {string} */
function scheduleOf(lr, schedule) {
  if (!schedule || (schedule.type === "constant" && !schedule.warmup_steps)) return String(lr);
  if (schedule.type === "cosine" && !schedule.warmup_steps) return `${lr}, by half a cosine to ${schedule.min_lr ?? 0}`;
  return `${lr}, ${inline(schedule)}`;
}

/**
 * @param {HTMLElement} host
 * @param {Record<string, any>} spec the job's spec
 */
export function showModel(host, spec) {
  const { model, predict } = spec;
  /** @type {Array<[string, Node | string | false]>} */
  const facts = [["Input", inputOf(model.input)], ...(predict ? [] : training(spec))];
  if (predict) facts.push(["Weights of", make("a", { href: `/runs/${encodeURIComponent(predict.job)}` }, predict.job)]);
  const list = make("dl", { class: "facts" });
  fillList(list, facts);
  host.replaceChildren(
    make("div", { class: "scroll" }, make("table", { class: "stacked" },
      make("thead", {}, make("tr", {},
        ...["", "Layer", "Units", "Activation", "Options"].map((head) => make("th", head === "Units" ? { class: "number", scope: "col" } : { scope: "col" }, head)))),
      make("tbody", {}, ...model.layers.map(layerRow)))),
    list);
}

/** The shape of a row, or of each named input's. @param {number[] | Record<string, number[]>} input @returns {string} */
export function inputOf(input) {
  const shape = (/** @type {number[]} */ sides) => `[${sides.join(", ")}]`;
  return Array.isArray(input) ? shape(input) : Object.entries(input).map(([name, sides]) => `${name} ${shape(sides)}`).join(", ");
}

/** How it trains. @param {Record<string, any>} spec @returns {Array<[string, string | false]>} */
function training(spec) {
  const { train, optimizer, data } = spec;
  const { type, lr, schedule, ...options } = optimizer;
  return [
    ["Loss", typeof spec.loss === "string" ? spec.loss : inline(spec.loss)],
    ["Optimizer", inline({ type, ...options })],
    ["Learning rate", scheduleOf(lr, schedule)],
    ["Length", train.epochs ? `${formatCount(train.epochs)} epochs` : `${formatCount(train.steps)} steps`],
    ["Batch size", (train.batch_size ? formatCount(train.batch_size) : "all rows") + (train.accumulate_steps > 1 ? `, ${train.accumulate_steps} of them a step` : "")],
    ["Seed", String(train.seed)],
    ["Validation", validationOf(data?.validation)],
    ["Inputs", data?.normalize && data.normalize !== "none" && `normalised: ${data.normalize}`],
  ];
}
