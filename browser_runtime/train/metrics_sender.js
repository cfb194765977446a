// Packs points of the loss curve into the frames of docs/page-protocol.md and sends them a few times a second, in order.

/** @import { Point } from "./pipeline.js" */

const PERIOD_MS = 250;
/** Validation has points of its own, so it gets frames of its own. */
const ofValidation = (/** @type {string} */ key) => key.startsWith("val_");
/** @type {((key: string) => boolean)[]} */
const GROUPS = [(key) => key !== "step" && !ofValidation(key), ofValidation];

export class MetricsSender {
  /**
   * @param {(frame: Blob) => Promise<unknown>} send frames go out one after the other
   * @param {number} totalSteps
   */
  constructor(send, totalSteps) {
    this.#send = send;
    this.#totalSteps = totalSteps;
  }

  /** @type {Partial<Point>} the newest value of each key */
  last = {};

  #send;
  #totalSteps;
  /** @type {Point[]} */
  #points = [];
  #sending = Promise.resolve();
  #error = /** @type {unknown} */ (null);
  #timer = 0;
  #lastSentMs = -Infinity;

  /** Takes points in the order of their steps; they leave within a quarter of a second. @param {Point[]} points */
  add(points) {
    this.#points.push(...points);
    for (const { step: _, ...values } of points) Object.assign(this.last, values);
    if (this.#timer || this.#points.length === 0) return;
    const delayMs = Math.max(0, this.#lastSentMs + PERIOD_MS - performance.now());
    this.#timer = setTimeout(() => this.#sendSoon(), delayMs);
  }

  /** Resolves once all points have been taken; rejects if any was not. */
  async flush() {
    this.#sendSoon();
    await this.#sending;
    if (this.#error) throw this.#error;
  }

  #sendSoon() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const points = this.#points;
    this.#points = [];
    if (points.length === 0) return;
    this.#lastSentMs = performance.now();
    const frames = encodeFrames(points, this.#totalSteps);
    this.#sending = this.#sending.then(async () => {
      for (const frame of frames) await this.#send(frame);
    });
    this.#sending = this.#sending.catch((error) => {
      this.#error ??= error;
    });
  }
}

/** A frame that says only how far a job is. @param {number} step @param {number} totalSteps */
export function progressFrame(step, totalSteps) {
  const header = new TextEncoder().encode(JSON.stringify({ keys: ["step"], count: 0, step, total_steps: totalSteps }));
  return new Blob([new Uint8Array(new Uint32Array([header.length]).buffer), header]);
}

/**
 * @param {Point[]} points at least one
 * @param {number} totalSteps
 * @returns {Blob[]} one frame for each group of keys that has points
 */
export function encodeFrames(points, totalSteps) {
  const step = points[points.length - 1].step;
  // What is no number, a confusion matrix, has no curve.
  const known = [...new Set(points.flatMap((point) => Object.keys(point).filter((key) => typeof point[/** @type {keyof Point} */ (key)] === "number")))];
  return GROUPS.flatMap((group) => {
    const keys = /** @type {(keyof Point)[]} */ (known.filter(group));
    const rows = points.filter((point) => keys.some((key) => point[key] !== undefined));
    if (rows.length === 0) return [];
    const header = new TextEncoder().encode(JSON.stringify({ keys, count: rows.length, step, total_steps: totalSteps }));
    const body = new DataView(new ArrayBuffer(4 + rows.length * (4 + 8 * keys.length)));
    body.setUint32(0, header.length, true);
    rows.forEach((row, index) => {
      body.setUint32(4 + 4 * index, row.step, true);
      keys.forEach((key, column) => {
        const offset = 4 + 4 * rows.length + 8 * (index * keys.length + column);
        body.setFloat64(offset, row[key] ?? NaN, true);
      });
    });
    const bytes = new Uint8Array(body.buffer);
    return [new Blob([bytes.subarray(0, 4), header, bytes.subarray(4)])];
  });
}
