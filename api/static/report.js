// The precision report of a run, written for people. Takes the diagnostics as the API serves them; knows no HTTP.

import { label, make } from "./dom.js";
import { formatCount, formatDuration, formatNumber, shortRenderer, toNumber } from "./format.js";

/**
 * @typedef {{renderer: string, vendor: string, version: string, software: boolean, userAgent: string,
 *   extensions: string[], limits: Record<string, number | number[]>}} Device
 * @typedef {{expression: string, expected: unknown, got: unknown, ok: boolean, used: boolean}} NonFiniteCase
 * @typedef {number | string | null} Size null: there was nothing to compare
 * @typedef {{op: string, name: string, elements: number, compared?: number, maxRelativeError: Size,
 *   maxNormalizedError: Size, maxUlp: Size, maxAbsoluteError: Size}} OperatorError
 * @typedef {{step: number, loss: number | string, reference: number | string, relativeError: number | string | null}} FirstLoss
 * @typedef {{version: number, level: string, device: Device,
 *   float32: {format: string, renderable: boolean, proof: Record<string, unknown> | boolean},
 *   readback: {exact: boolean, count: number, mismatches: number},
 *   nonfinite: NonFiniteCase[], operators: OperatorError[], firstLosses: FirstLoss[],
 *   coverage: {elapsedMs: number, operatorsChecked: number, operatorsTotal: number, lossesChecked: number, weightsAtStep: number}}} Diagnostics
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

/** A broken expression matters where the engine uses it. @param {NonFiniteCase} each */
const holds = (each) => each.ok || !each.used;

/** Above this error, relative to an output's largest value, an operator is worth a look: float32 and blocked sums stay far below. */
const LARGE_ERROR = 1e-4;

/** Whether some of its elements were numbers on both sides. @param {OperatorError} each */
const isComparable = (each) => each.maxNormalizedError !== null;

/** The operator with the largest error; one that is not a number is the worst. @param {OperatorError[]} operators */
function worstOperator(operators) {
  const size = (/** @type {OperatorError} */ each) => {
    const error = toNumber(each.maxNormalizedError);
    return error === null || Number.isNaN(error) ? Infinity : error;
  };
  return operators.reduce((most, each) => (size(each) > size(most) ? each : most), operators[0]);
}

/**
 * What the report says as a whole. Proofs are what has a right answer; errors of operators have a size.
 * @param {Diagnostics} report
 * @returns {{tone: "good" | "warn" | "bad", text: string}}
 */
export function judge(report) {
  const { operatorsChecked, operatorsTotal } = report.coverage;
  if (!(report.float32.renderable && report.readback.exact && report.nonfinite.every(holds))) return { tone: "bad", text: "a proof failed" };
  if (report.firstLosses.some((each) => !isNumber(each.loss))) return { tone: "warn", text: "training had diverged" };
  if (!report.operators.length || !operatorsChecked) return { tone: "warn", text: "no operator was measured" };
  if (!report.operators.some(isComparable)) return { tone: "warn", text: "training had diverged: nothing to compare" };
  const worst = worstOperator(report.operators.filter(isComparable));
  const error = toNumber(worst.maxNormalizedError);
  if (error === null || !(error <= LARGE_ERROR)) return { tone: "warn", text: `look at ${worst.name}: error ${formatNumber(worst.maxNormalizedError, 2)}` };
  if (operatorsChecked < operatorsTotal) return { tone: "good", text: `proofs passed, ${operatorsChecked} of ${operatorsTotal} operators measured` };
  return { tone: "good", text: "all proofs passed" };
}

/** @param {unknown} value as the API writes it */
const isNumber = (value) => Number.isFinite(toNumber(value));

/**
 * How far a loss is from float64: relative to it, or by itself where float64 says 0, to which nothing is relative.
 * A loss that is not finite has no distance: what float32 can't hold, float64 may.
 * @param {FirstLoss} each
 * @returns {{error: number | null, absolute: boolean}}
 */
export function lossError({ loss, reference, relativeError }) {
  const [got, exact] = [toNumber(loss), toNumber(reference)];
  if (got === null || exact === null || !isNumber(loss)) return { error: null, absolute: false };
  if (exact === 0) return { error: Math.abs(got), absolute: true };
  return { error: toNumber(relativeError), absolute: false };
}

/** @param {FirstLoss[]} losses */
function worstLoss(losses) {
  const errors = losses.filter((each) => isNumber(each.loss)).map(lossError);
  const most = (/** @type {boolean} */ absolute) => {
    const those = errors.filter((each) => each.absolute === absolute);
    return those.length ? `≤ ${formatNumber(worst(those.map(({ error }) => error)), 3)}${absolute ? " absolute" : ""}` : null;
  };
  return [most(false), most(true), errors.length < losses.length && "then not finite"].filter(Boolean).join(", ") || "not measured";
}

/** @param {NonFiniteCase} each */
function outcome(each) {
  if (each.ok) return label("ok", "good");
  return each.used ? label("wrong", "bad") : label("wrong, never used", "warn");
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

/** @param {unknown} value */
function formatUlp(value) {
  const number = toNumber(value);
  return number !== null && number >= 100 ? formatCount(Math.round(number)) : formatNumber(value, 3);
}

/** The largest error of all operators that have one. @param {OperatorError[]} operators @param {string} tone */
function errorLabel(operators, tone) {
  if (!operators.length) return label("not measured", "warn");
  const errors = operators.filter(isComparable).map((each) => each.maxNormalizedError);
  return errors.length ? label(`≤ ${formatNumber(worst(errors), 3)}`, tone) : label("not comparable", "warn");
}

/** How many elements there are, and of how many there is a distance. @param {OperatorError} each */
function formatElements({ elements, compared = elements }) {
  return compared < elements ? `${formatCount(compared)} of ${formatCount(elements)}` : formatCount(elements);
}

/** @param {FirstLoss} each */
function formatLossError(each) {
  const { error, absolute } = lossError(each);
  return `${formatNumber(error, 2)}${absolute ? " absolute" : ""}`;
}

/** @param {string} title @param {Node} status @param {string} text */
const check = (title, status, text) => make("li", {}, status, make("strong", {}, title), text);

/** @param {Diagnostics} report */
function checks(report) {
  const { float32, readback, nonfinite, operators, firstLosses } = report;
  const used = nonfinite.filter((each) => each.used);
  const held = used.filter((each) => each.ok);
  const avoided = nonfinite.filter((each) => !each.used && !each.ok);
  return make("ul", { class: "checks" },
    check("float32", verdict(float32.renderable, "proved", "failed"),
      `A float texture (${float32.format}) was rendered and read back.`),
    check("Readback", verdict(readback.exact, "bit-exact", "inexact"),
      readback.exact ? `${formatCount(readback.count)} values came back with every bit unchanged.`
        : `${formatCount(readback.mismatches)} of ${formatCount(readback.count)} values came back changed.`),
    check("NaN, infinity", verdict(held.length === used.length, "kept", "altered"),
      `${held.length} of the ${used.length} expressions that the engine uses gave what IEEE 754 says` +
      (avoided.length ? `; ${avoided.length} that it avoids did not.` : ".")),
    check("Operators", errorLabel(operators, judge(report).tone === "warn" ? "warn" : ""),
      `Largest error of ${operators.length} outputs on this job's first batch against float64, ` +
      "relative to the largest value of each."),
    check("First losses", label(worstLoss(firstLosses)),
      firstLosses.length ? `Largest relative difference of ${firstLosses.length} training steps to a float64 run of the same plan.`
        : "Compared only from a run's first step on, and where float64 is fast enough."),
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
      ` in ${formatDuration(coverage.elapsedMs / 1000)}, with the weights after step ${coverage.weightsAtStep}: ` +
      `${coverage.operatorsChecked} of ${coverage.operatorsTotal} operators and ${coverage.lossesChecked} losses.`),
    checks(report),
    make("h3", {}, "Device"),
    deviceFacts(report.device),
    make("div", { class: "columns uneven" },
      make("div", {}, make("h3", {}, "Operators against float64"),
        table("Largest error of each operator", ["Output", "Operator", "#Elements", "#Error / largest", "#Relative error", "#ULP"],
          report.operators.map((each) => [make("code", {}, each.name), each.op, formatElements(each),
            isComparable(each) ? formatNumber(each.maxNormalizedError, 3) : "not comparable",
            formatNumber(each.maxRelativeError, 3), formatUlp(each.maxUlp)])),
        make("p", { class: "hint" }, "Relative error and ULP are those of the single worst element; where terms cancel, " +
          "an element near zero has many. What is NaN or infinite on both sides has no distance.")),
      make("div", {}, make("h3", {}, "First losses against float64"),
        table("First losses", ["#Step", "#Loss", "#float64", "#Relative difference"],
          report.firstLosses.map((each) => [String(each.step), formatNumber(each.loss, 8), formatNumber(each.reference, 8),
            formatLossError(each)])))),
    make("details", { open: !report.nonfinite.every(holds) },
      make("summary", {}, "NaN and infinity, expression by expression"),
      table("Truth table of NaN and infinity", ["Expression", "Expected", "Got", ""],
        report.nonfinite.map((each) => [make("code", {}, each.expression), String(each.expected), String(each.got),
          outcome(each)]))));
}
