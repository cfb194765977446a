// The precision report of a run, written for people. Takes the diagnostics as the API serves them; knows no HTTP.

import { label, make } from "./dom.js";
import { formatCount, formatDuration, formatNumber, shortRenderer, toNumber } from "./format.js";

/**
 * @typedef {{renderer: string, vendor: string, version: string, software: boolean, userAgent: string,
 *   extensions: string[], limits: Record<string, number | number[]>}} Device
 * @typedef {{expression: string, expected: unknown, got: unknown, ok: boolean}} NonFiniteCase
 * @typedef {{op: string, name: string, elements: number, maxRelativeError: number | string,
 *   maxUlp: number | string, maxAbsoluteError: number | string}} OperatorError
 * @typedef {{step: number, loss: number | string, reference: number | string, relativeError: number | string}} FirstLoss
 * @typedef {{version: number, level: string, device: Device,
 *   float32: {format: string, renderable: boolean, proof: Record<string, unknown> | boolean},
 *   readback: {exact: boolean, count: number, mismatches: number},
 *   nonfinite: NonFiniteCase[], operators: OperatorError[], firstLosses: FirstLoss[],
 *   coverage: {elapsedMs: number, operatorsChecked: number, operatorsTotal: number, lossesChecked: number}}} Diagnostics
 */

/** @param {boolean} good @param {string} yes @param {string} no */
const verdict = (good, yes, no) => label(good ? yes : no, good ? "good" : "bad");

/**
 * The largest number of a list as the API writes it; NaN wins, so that it is never hidden.
 * @param {unknown[]} values
 */
function worst(values) {
  return values.reduce((/** @type {number} */ most, value) => {
    const number = toNumber(value) ?? NaN;
    return Number.isNaN(most) || Number.isNaN(number) ? NaN : Math.max(most, number);
  }, 0);
}

/** Whether the device passed each test that has a right answer. @param {Diagnostics} report */
export function passes(report) {
  return report.float32.renderable && report.readback.exact && report.nonfinite.every((each) => each.ok);
}

/**
 * @param {string} caption
 * @param {string[]} heads a leading "#" right-aligns a column of numbers
 * @param {Array<Array<string | Node>>} rows
 */
function table(caption, heads, rows) {
  const kind = heads.map((head) => ({ class: head.startsWith("#") ? "number" : "text" }));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {},
      make("thead", {}, make("tr", {},
        ...heads.map((head, column) => make("th", { scope: "col", ...kind[column] }, head.replace("#", ""))))),
      make("tbody", {}, ...rows.map((row) => make("tr", {},
        ...row.map((cell, column) => make("td", kind[column], cell)))))));
}

/** @param {string} title @param {Node} status @param {string} text */
const check = (title, status, text) => make("li", {}, status, make("strong", {}, title), text);

/** @param {Diagnostics} report */
function checks(report) {
  const { float32, readback, nonfinite, operators, firstLosses } = report;
  const held = nonfinite.filter((each) => each.ok).length;
  return make("ul", { class: "checks" },
    check("float32 rendering", verdict(float32.renderable, "proved", "failed"),
      `A float texture (${float32.format}) was rendered and read back.`),
    check("Readback", verdict(readback.exact, "bit-exact", "inexact"),
      readback.exact ? `${formatCount(readback.count)} values came back with every bit unchanged.`
        : `${formatCount(readback.mismatches)} of ${formatCount(readback.count)} values came back changed.`),
    check("NaN and infinity", verdict(held === nonfinite.length, "kept", "altered"),
      `${held} of ${nonfinite.length} expressions gave what IEEE 754 says.`),
    check("Operators", label(`≤ ${formatNumber(worst(operators.map((each) => each.maxUlp)), 3)} ULP`),
      `${operators.length} operators of this job, on its first batch, against float64: ` +
      `relative error at most ${formatNumber(worst(operators.map((each) => each.maxRelativeError)), 2)}.`),
    check("First losses", label(`≤ ${formatNumber(worst(firstLosses.map((each) => each.relativeError)), 2)}`),
      `${firstLosses.length} training steps against a float64 run of the same plan: largest relative difference.`),
  );
}

/** @param {Device} device */
function deviceFacts(device) {
  /** @type {Array<[string, string | Node]>} */
  const facts = [
    ["Renderer", device.renderer],
    ["Vendor", device.vendor],
    ["WebGL", device.version],
    ["Browser", device.userAgent],
  ];
  const limits = Object.entries(device.limits).map(([name, value]) => [make("code", {}, name), String(value)]);
  return make("div", {},
    make("dl", { class: "facts left" }, ...facts.flatMap(([term, value]) => [make("dt", {}, term), make("dd", {}, value)])),
    make("details", {}, make("summary", {}, `${device.extensions.length} extensions, ${limits.length} limits`),
      make("p", {}, make("code", {}, device.extensions.join(" "))),
      table("Limits of the device", ["Limit", "#Value"], limits)));
}

/**
 * Fill an element with the report.
 * @param {HTMLElement} host
 * @param {Diagnostics} report
 */
export function showReport(host, report) {
  const { coverage } = report;
  host.replaceChildren(
    make("p", {}, `Measured on ${shortRenderer(report.device.renderer)} `,
      report.device.software && label("software", "warn"),
      ` before the first step, in ${formatDuration(coverage.elapsedMs / 1000)}: ` +
      `${coverage.operatorsChecked} of ${coverage.operatorsTotal} operators and ${coverage.lossesChecked} losses.`),
    checks(report),
    make("h3", {}, "Device"),
    deviceFacts(report.device),
    make("div", { class: "columns" },
      make("div", {}, make("h3", {}, "Operators against float64"),
        table("Largest error of each operator", ["Operator", "Output", "#Elements", "#Relative error", "#ULP"],
          report.operators.map((each) => [each.op, make("code", {}, each.name), formatCount(each.elements),
            formatNumber(each.maxRelativeError, 3), formatNumber(each.maxUlp, 3)]))),
      make("div", {}, make("h3", {}, "First losses against float64"),
        table("First losses", ["#Step", "#Loss", "#float64", "#Relative difference"],
          report.firstLosses.map((each) => [String(each.step), formatNumber(each.loss, 8), formatNumber(each.reference, 8),
            formatNumber(each.relativeError, 2)])))),
    make("details", { open: !report.nonfinite.every((each) => each.ok) },
      make("summary", {}, "NaN and infinity, expression by expression"),
      table("Truth table of NaN and infinity", ["Expression", "Expected", "Got", ""],
        report.nonfinite.map((each) => [make("code", {}, each.expression), String(each.expected), String(each.got),
          verdict(each.ok, "ok", "wrong")]))));
}
