// Remote: the engine as the page sees it, in a Worker or in this thread, behind the same two classes.
import { EngineError } from "../errors.js";
import { dataField, eachInput, mapValues, named, shapesOf } from "../nn/inputs.js";
import { checkData, checkSources } from "./data.js";
import { checkOption, checkOptions, LEVEL, OPTIONS } from "./options.js";
import { planSession } from "./planning.js";
import { checkBytes } from "./safetensors.js";
import { ask, owned, posted } from "./sources.js";
import { failureOf, startWorker } from "./start_worker.js";
import { tensorsOf } from "./weights.js";

/** @import { ArraySource } from "./sources.js" */
/** @import { Point } from "./pipeline.js" */
/** @import { ModelInput } from "../nn/inputs.js" */
/** @import { Data } from "./data.js" */
/** @import { RunRecord } from "./run_record.js" */
/** @import { Weights } from "./weights.js" */
/** @import { DeviceOptions, DeviceRecord } from "../backends/webgl2/device.js" */

/** Calls the other side: `send(method, args, hooks)`. @typedef {(method: string, args: any, hooks?: Hooks) => Promise<any>} Send */
/** `onMissed` gets what comes after `onPoints` has failed. @typedef {{signal?: AbortSignal, onPoints?: (points: Point[]) => any, onMissed?: (points: Point[]) => void, onState?: (state: SessionState) => void}} Hooks */
/** @typedef {{step: number, totalSteps: number, done: boolean, record: Omit<RunRecord, "normalization">}} SessionState */

/**
 * @param {{shaderUrl: string, thread: "auto"|"worker"|"inline", device: DeviceOptions}} options
 * @returns {Promise<EngineProxy>}
 */
export async function connect({ shaderUrl, thread, device }) {
  const canWork = typeof Worker === "function" && typeof OffscreenCanvas === "function" && typeof globalThis.document === "object";
  if (thread === "worker" && !canWork) throw new EngineError("spec_invalid", "options.thread: worker needs a page with Worker and OffscreenCanvas; legal here: auto, inline", { field: "options.thread" });
  const channel = thread === "inline" || !canWork ? await inlineChannel() : workerChannel();
  try {
    return new EngineProxy(channel, await channel.send("create", { shaderUrl, device }), device);
  } catch (error) {
    channel.close();
    throw error;
  }
}

/** The other side's messages, to whoever waits for them. */
class Channel {
  /** @param {(message: any, transfer?: Transferable[]) => void} post @param {() => void} close */
  constructor(post, close) {
    this.post = post;
    this.close = close;
    this.calls = 0;
    /** @type {Map<number, {resolve: (value: any) => void, reject: (error: Error) => void, hooks: Hooks, deliveries: Promise<void>}>} */
    this.waiting = new Map();
    /** @type {(() => void)[]} */
    this.ends = [];
    /** What the other side may read here, by number. @type {Map<number, ArraySource>} */
    this.offered = new Map();
    this.offers = 0;
    /** Why nothing can be sent any more. @type {EngineError|null} */
    this.closed = null;
  }

  /**
   * What is posted of a source: one that only this thread can read is asked for window by window, until it is withdrawn.
   * @param {ArraySource} source @param {number[]} offers its number is added @param {string} field as what it is given
   */
  offer(source, offers, field) {
    const description = posted(source, field);
    if (!description?.remote) return description;
    this.offered.set(++this.offers, source);
    offers.push(this.offers);
    return { ...description, remote: this.offers };
  }

  /** @param {ModelInput} input @param {ArraySource|Record<string, ArraySource>} x @param {number[]} offers @param {string} [of] as what they are given */
  offerInputs(input, x, offers, of) {
    return eachInput(input, x, (source, name) => this.offer(source, offers, dataField(name, of)));
  }

  /** @param {ModelInput} input @param {Data|undefined} data @param {number[]} offers @returns {Record<string, any>|undefined} */
  offerAll(input, data, offers) {
    if (!data) return data;
    const { x, ...others } = data;
    return { x: this.offerInputs(input, x, offers), ...mapValues(others, (source, name) => this.offer(source, offers, `data.${name}`)) };
  }

  /** @param {number[]} offers */
  withdraw(offers) {
    for (const number of offers) this.offered.delete(number);
  }

  /** @param {{read: number, source: number, start: number, count: number}} request */
  async answer({ read, source, start, count }) {
    const offered = this.offered.get(source);
    try {
      const values = owned(await ask(/** @type {ArraySource} */ (offered), start, count));
      this.post({ read, values }, [values.buffer]);
    } catch (error) {
      const what = offered && "read" in offered ? `read(${start}, ${count}) failed` : `rows ${start} to ${start + count - 1}`;
      this.post({ read, failed: `${what}: ${/** @type {any} */ (error)?.message ?? error}` });
    }
  }

  /** @type {Send} */
  send(method, args, hooks = {}) {
    // Not sent: a call that needs no waiting would be done before the message that aborts it is read.
    if (this.closed) return Promise.reject(this.closed);
    if (hooks.signal?.aborted) return Promise.reject(new EngineError("aborted", `${method}: its signal is aborted already`));
    return this.request(method, args, hooks);
  }

  /** @type {Send} */
  request(method, args, hooks = {}) {
    const call = ++this.calls;
    return new Promise((resolve, reject) => {
      const abort = () => this.post({ call, abort: true });
      hooks.signal?.addEventListener("abort", abort, { once: true });
      const settle = (/** @type {(value: any) => void} */ end) => (/** @type {any} */ value) => {
        hooks.signal?.removeEventListener("abort", abort);
        end(value);
      };
      this.waiting.set(call, { resolve: settle(resolve), reject: settle(reject), hooks, deliveries: Promise.resolve() });
      this.post({ call, method, args });
    });
  }

  /** @param {any} message */
  async receive({ call, result, error, points, state, read, source, start, count, lost }) {
    if (lost) return this.end();
    if (read !== undefined) return this.answer({ read, source, start, count });
    const waiting = this.waiting.get(call);
    if (!waiting) return;
    const { hooks, resolve, reject } = waiting;
    if (state) hooks.onState?.(state);
    if (points) {
      // In order, and all before the call ends.
      waiting.deliveries = waiting.deliveries.then(() => hooks.onPoints?.(points), (cause) => {
        hooks.onMissed?.(points);
        throw cause;
      });
      waiting.deliveries.catch(() => this.post({ call, abort: true }));
    } else {
      this.waiting.delete(call);
      await waiting.deliveries.catch(reject);
      if (error) reject(new EngineError(error.code, error.message, error));
      else resolve(result);
    }
  }

  /** Whoever keeps this engine for the next session must make a new one. */
  end() {
    for (const notify of this.ends) notify();
    this.ends.length = 0;
  }

  /** Nothing is sent from now on, and nobody waits any more. @param {EngineError} why */
  shut(why) {
    this.closed = why;
    for (const { reject } of this.waiting.values()) reject(why);
    this.waiting.clear();
    this.end();
  }
}

function workerChannel() {
  const worker = startWorker();
  const channel = new Channel((message, transfer = []) => worker.postMessage(message, transfer), () => worker.terminate());
  worker.onmessage = ({ data }) => void channel.receive(data);
  worker.onerror = (event) => {
    channel.shut(failureOf(event));
    channel.close();
  };
  return channel;
}

/** The Worker's code in this thread: the same messages, without copies. */
async function inlineChannel() {
  const { serve } = await import("./serve.js").catch((cause) => {
    throw new EngineError("internal", `a module of the engine can't be loaded: ${cause.message}`, { cause });
  });
  /** @type {Channel} */
  let channel;
  const handle = serve((message) => queueMicrotask(() => void channel.receive(message)));
  channel = new Channel((message) => void handle(message), () => {});
  return channel;
}

export class EngineProxy {
  /** @param {Channel} channel @param {DeviceRecord} record @param {DeviceOptions} device what was chosen for it */
  constructor(channel, record, device) {
    this.channel = channel;
    this.record = record;
    this.device = device;
  }

  /** Calls back once the context is lost. @param {() => void} callback */
  onEnd(callback) {
    this.channel.ends.push(callback);
  }

  /** Gives the context and the Worker back; sessions end with it, and whatever they were doing. */
  async release() {
    const { channel } = this;
    if (channel.closed) return;
    channel.shut(new EngineError("disposed", "the engine was released, and its sessions with it"));
    await channel.request("release", {});
    channel.close();
  }

  /** @returns {Promise<DeviceRecord>} */
  probe() {
    return this.channel.send("probe", {});
  }

  /**
   * @param {any} spec validated
   * @param {{data?: Data, initialWeights?: Weights|Uint8Array, allowSoftware: boolean, signal?: AbortSignal}} options
   */
  async compile(spec, { data: given, initialWeights, allowSoftware, signal }) {
    const { renderer, software } = this.record;
    if (software && !allowSoftware) {
      throw new EngineError("software_refused", `the renderer is ${renderer}, which draws on the CPU, and this job does not allow that (allow_software)`, {
        field: "allow_software",
      });
    }
    // A file is read where it is used.
    const begin = initialWeights === undefined || isFile(initialWeights) ? initialWeights : tensorsOf(initialWeights, "initialWeights");
    const { planned, data } = planSession(spec, given, this.record, this.device);
    /** @type {number[]} */
    const offers = [];
    const { input } = spec.model;
    const offered = this.channel.offerAll(shapesOf(input), data, offers);
    try {
      const args = { planned, data: offered, initialWeights: begin };
      const { session, state, normalization } = await this.channel.send("compile", args, { signal });
      return new SessionProxy(this.channel, session, state, normalization, input, offers);
    } catch (error) {
      this.channel.withdraw(offers);
      throw error;
    }
  }
}

/** Whether it was meant as one, with its bytes or without. @param {unknown} given */
const isFile = (given) => given instanceof Uint8Array || given instanceof ArrayBuffer;

/** A session as the page sees it; see session.js for what each method does. */
export class SessionProxy {
  /** @param {Channel} channel @param {number} session @param {SessionState} state @param {RunRecord["normalization"]} normalization
   * @param {ModelInput} input of its model @param {number[]} offers its data */
  constructor(channel, session, state, normalization, input, offers) {
    this.channel = channel;
    this.session = session;
    this.input = input;
    this.offers = offers;
    /** What inputs go through before the first layer, (x - offset) * scale by feature or channel; null: nothing. By name where there are several. */
    this.normalization = normalization;
    /** @type {SessionState} */
    this.state = state;
    /** Points that came after the caller's onTelemetry had failed. @type {Point[]} */
    this.missed = [];
  }

  /** Steps done. */
  get step() {
    return this.state.step;
  }

  get totalSteps() {
    return this.state.totalSteps;
  }

  /** Whether no steps are left: all are taken, or early stopping ended the run. */
  get done() {
    return this.state.done;
  }

  /** @returns {RunRecord} */
  get record() {
    return { ...this.state.record, normalization: this.normalization };
  }

  /** @param {string} method @param {any} [args] @param {Hooks} [hooks] */
  call(method, args = {}, hooks = {}) {
    return this.channel.send(method, { session: this.session, ...args }, { ...hooks, onState: (state) => (this.state = state) });
  }

  /**
   * Trains `steps` steps, or to the end; pause is not calling it again. A run that is aborted, or whose onTelemetry fails, ends between two
   * steps; points that came after it had failed are the first that the next run shows,
   * those that it was called with are not shown again.
   * @param {{steps?: number, onTelemetry?: (points: Point[]) => any, signal?: AbortSignal}} [options]
   * @returns {Promise<{step: number, done: boolean}>}
   */
  async run(options = {}) {
    checkOptions(options, OPTIONS.run);
    const { steps, onTelemetry, signal } = options;
    const missed = this.missed.splice(0);
    if (missed.length > 0) await onTelemetry?.(missed);
    return this.call("run", { steps }, { signal, onPoints: onTelemetry, onMissed: (points) => void this.missed.push(...points) });
  }

  /** @param {Data} [data] @returns {Promise<{loss: number, accuracy?: number, [metric: string]: any}>} */
  async evaluate(data) {
    if (data !== undefined) checkData(this.input, data);
    /** @type {number[]} */
    const offers = [];
    const offered = this.channel.offerAll(this.input, data, offers);
    return this.call("evaluate", { data: offered }).finally(() => this.channel.withdraw(offers));
  }

  /** @param {ArraySource|Record<string, ArraySource>} x by name where there are several @returns {Promise<{shape: number[], data: Float32Array}>} */
  async predict(x) {
    checkSources(this.input, named(this.input, x), "x");
    /** @type {number[]} */
    const offers = [];
    const offered = this.channel.offerInputs(this.input, x, offers, "x");
    return this.call("predict", { x: offered }).finally(() => this.channel.withdraw(offers));
  }

  /** @returns {Promise<Weights>} */
  getWeights() {
    return this.call("getWeights");
  }

  /** @param {Weights} weights @returns {Promise<void>} */
  async setWeights(weights) {
    return this.call("setWeights", { weights: tensorsOf(weights, "weights") });
  }

  /** @returns {Promise<Uint8Array<ArrayBuffer>>} safetensors */
  weightsFile() {
    return this.call("weightsFile");
  }

  /** @returns {Promise<Uint8Array<ArrayBuffer>>} safetensors */
  checkpoint() {
    return this.call("checkpoint");
  }

  /** @param {Uint8Array} bytes @returns {Promise<{step: number, bitExact: boolean}>} */
  async restore(bytes) {
    checkBytes(bytes, "checkpoint");
    const restored = await this.call("restore", { bytes });
    this.missed.length = 0; // they are of the run that it replaces
    return restored;
  }

  /** @param {"basic"|"full"} [level] @returns {Promise<any>} the precision report */
  async diagnose(level) {
    if (level !== undefined) checkOption(level, LEVEL, "level");
    return this.call("diagnose", { level });
  }

  /** @returns {Promise<void>} */
  async dispose() {
    await this.channel.send("dispose", { session: this.session }).catch((error) => {
      if (error.code !== "disposed") throw error;
    });
    this.channel.withdraw(this.offers);
  }
}
