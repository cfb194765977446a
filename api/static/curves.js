// Charts of a run: uPlot with gaps and a marked step where a value is not finite. Knows no HTTP.

import uPlot from "./vendor/uplot/uPlot.esm.js";
import { formatNumber } from "./format.js";

/**
 * One curve. Steps rise; values are numbers, non-finite ones included.
 * @typedef {{steps: number[], values: number[]}} Curve
 * @typedef {{key: string, title: string, tone: "train" | "validation" | "second" | "third" | "fourth" | "fifth" | "sixth"}} Series
 */

/** Stroke widths in CSS pixels. */
const LINE = 1.75;
const HEIGHT = 280;

/** Resolve the colour of a class of dashboard.css, which follows the colour scheme. @param {string} className */
function colourOf(className) {
  const probe = document.createElement("i");
  probe.className = className;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

/**
 * The union of all steps, and each curve on it: null where a curve has no point, and where its value can't be drawn
 * (NaN, infinities, and on a log scale everything that is not positive).
 * @param {Curve[]} curves
 * @param {boolean} logarithmic
 * @returns {[number[], ...Array<Array<number | null>>]}
 */
export function align(curves, logarithmic) {
  const steps = [...new Set(curves.flatMap((curve) => curve.steps))].sort((a, b) => a - b);
  const position = new Map(steps.map((step, index) => [step, index]));
  return [steps, ...curves.map((curve) => {
    /** @type {Array<number | null>} */
    const column = new Array(steps.length).fill(null);
    curve.steps.forEach((step, index) => {
      const value = curve.values[index];
      const drawable = Number.isFinite(value) && (!logarithmic || value > 0);
      column[/** @type {number} */ (position.get(step))] = drawable ? value : null;
    });
    return column;
  })];
}

/**
 * The first step at which a curve is not finite, and the value there.
 * @param {Curve} curve
 * @returns {{step: number, value: number} | null}
 */
export function firstNonFinite(curve) {
  const index = curve.values.findIndex((value) => !Number.isFinite(value));
  return index < 0 ? null : { step: curve.steps[index], value: curve.values[index] };
}

/** Steps are whole numbers, and so are their ticks: 1, 2 or 5 times a power of ten apart. */
export const STEP_INCREMENTS = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/**
 * Whether a log scale shows the curves: there are finite values, and all of them are positive.
 * @param {Curve[]} curves
 */
export function suitsLog(curves) {
  const finite = curves.flatMap(({ values }) => values.filter(Number.isFinite));
  return finite.length > 0 && finite.every((value) => value > 0);
}

/**
 * The axis of shares, such as an accuracy: a little room around the values, never beyond 0 and 1.
 * @param {number | null} least
 * @param {number | null} most
 * @returns {[number, number]}
 */
export function shareRange(least, most) {
  if (least === null || most === null) return [0, 1];
  const room = Math.max(0.1 * (most - least), 0.01);
  return [Math.max(least - room, 0), Math.min(most + room, 1)];
}

/** One chart in an element, redrawn with new curves, in the reader's colour scheme, as wide as its place. */
export class Chart {
  /**
   * @param {HTMLElement} host
   * @param {Series[]} series
   * @param {string} subject what the chart shows, for its text alternative
   * @param {{share?: boolean, raw?: boolean}} [options] `share`: values are shares of 1; neither these nor `raw` ones have a log scale
   */
  constructor(host, series, subject, { share = false, raw = share } = {}) {
    this.host = host;
    this.all = series;
    this.subject = subject;
    this.share = share;
    this.raw = raw;
    this.logarithmic = false;
    /** What the reader asked for; null: what suits the values. @type {boolean | null} */
    this.wanted = null;
    /** Those of `all` that have points: the legend names no curve that is not there. */
    this.series = series.slice(0, 1);
    /** @type {Curve[]} */
    this.curves = series.map(() => ({ steps: [], values: [] }));
    /** @type {uPlot | null} */
    this.plot = null;
    host.setAttribute("role", "img");
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(host);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.rebuild());
  }

  size() {
    return { width: Math.max(this.host.clientWidth, 200), height: HEIGHT };
  }

  /** @param {Record<string, Curve>} curves by key; missing ones are empty */
  show(curves) {
    const before = `${this.logarithmic} ${this.series.map(({ key }) => key)}`;
    const present = this.all.filter(({ key }) => curves[key]?.steps.length);
    this.series = present.length ? present : this.all.slice(0, 1);
    this.curves = this.series.map(({ key }) => curves[key] ?? { steps: [], values: [] });
    this.logarithmic = this.wanted ?? (!this.raw && suitsLog(this.curves));
    const after = `${this.logarithmic} ${this.series.map(({ key }) => key)}`;
    if (this.plot && before === after) this.plot.setData(align(this.curves, this.logarithmic));
    else this.rebuild();
    this.describe();
  }

  /** @param {boolean} logarithmic */
  setLogarithmic(logarithmic) {
    this.wanted = this.logarithmic = logarithmic;
    this.rebuild();
  }

  rebuild() {
    this.plot?.destroy();
    const [axis, grid] = [colourOf("axis"), colourOf("grid")];
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const shared = { stroke: axis, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    /** @type {uPlot.Options} */
    const options = {
      ...this.size(),
      scales: { x: { time: false }, y: this.share ? { range: (_, least, most) => shareRange(least, most) } : { distr: this.logarithmic ? 3 : 1 } },
      axes: [
        { ...shared, space: 70, incrs: STEP_INCREMENTS },
        { ...shared, size: 64, values: (_, splits) => splits.map((at) => (at === null ? "" : formatTick(at))) },
      ],
      series: [
        { label: "step" },
        ...this.series.map(({ title, tone }, index) => ({
          label: title,
          stroke: colourOf(`series-${tone}`),
          width: LINE,
          // A validation point stands between many training steps: join across the steps it has no value for.
          // A gap stays where the curve itself has a value that can't be drawn.
          spanGaps: false,
          gaps: (/** @type {uPlot} */ plot, /** @type {number} */ _, /** @type {number} */ from, /** @type {number} */ to) =>
            this.gaps(plot, index, from, to),
          points: { show: (/** @type {uPlot} */ _, /** @type {number} */ s) => this.curves[s - 1].steps.length < 60, size: 5 },
          value: (/** @type {uPlot} */ _, /** @type {number | null} */ value) => formatNumber(value),
        })),
      ],
      hooks: { draw: [(plot) => this.markNonFinite(plot)] },
      cursor: { points: { size: 7 }, drag: { x: true, y: false } },
      legend: { live: true },
    };
    this.plot = new uPlot(options, align(this.curves, this.logarithmic), this.host);
  }

  /**
   * Pixel ranges in which the line is interrupted: around points of this curve that can't be drawn.
   * @param {uPlot} plot
   * @param {number} index of the curve
   * @param {number} from first and last position that are drawn
   * @param {number} to
   * @returns {Array<[number, number]>}
   */
  gaps(plot, index, from, to) {
    const { steps, values } = this.curves[index];
    const [first, last] = [plot.data[0][from], plot.data[0][to]];
    /** @type {Array<[number, number]>} */
    const gaps = [];
    steps.forEach((step, at) => {
      if (step < first || step > last || (Number.isFinite(values[at]) && (!this.logarithmic || values[at] > 0))) return;
      const edge = (/** @type {number} */ other) => plot.valToPos(steps[other] ?? step, "x", true);
      gaps.push([Math.round(edge(at - 1)), Math.round(edge(at + 1))]);
    });
    return gaps;
  }

  /** A vertical line where a curve first stops being finite. @param {uPlot} plot */
  markNonFinite(plot) {
    const { left, top, width, height } = plot.bbox;
    const { ctx } = plot;
    for (const curve of this.curves) {
      const found = firstNonFinite(curve);
      if (!found) continue;
      const x = Math.round(plot.valToPos(found.step, "x", true));
      if (x < left || x > left + width) continue;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colourOf("fault");
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      ctx.restore();
    }
  }

  describe() {
    const parts = this.series.map(({ title }, index) => {
      const { steps, values } = this.curves[index];
      if (!steps.length) return `${title}: no points yet`;
      const finite = values.filter(Number.isFinite);
      return `${title}: from ${formatNumber(values[0])} to ${formatNumber(values.at(-1))} at step ${steps.at(-1)}, ` +
        `lowest ${formatNumber(finite.reduce((a, b) => Math.min(a, b), Infinity))}`;
    });
    this.host.setAttribute("aria-label", `${this.subject}. ${parts.join(". ")}`);
  }
}

/** @param {number} value */
function formatTick(value) {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e5) ? Number(value.toPrecision(3)).toExponential().replace("e+", "e").replace("-", "−") : String(Number(value.toPrecision(4)));
}
