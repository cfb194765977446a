// Remote: the engine as the page sees it, in a Worker or in this thread, behind the same two classes.
import { EngineError } from "../errors.js";
import { named, shapesOf } from "../nn/inputs.js";
import { inlineChannel, workerChannel } from "./channel.js";
import { checkData, checkSources } from "./data.js";
import { checkOption, checkOptions, LEVEL, OPTIONS } from "./options.js";
import { planSession } from "./planning.js";
import { checkBytes } from "./safetensors.js";
import { tensorsOf } from "./weights.js";

/** @import { Channel, Hooks, SessionState } from "./channel.js" */
/** @import { Restored } from "./checkpoint.js" */
/** @import { ArraySource } from "./sources.js" */
/** @import { Point } from "./pipeline.js" */
/** @import { ModelInput } from "../nn/inputs.js" */
/** @import { Data } from "./data.js" */
/** @import { RunRecord } from "./run_record.js" */
/** @import { Weights } from "./weights.js" */
/** @import { DeviceOptions, DeviceRecord } from "../backends/webgl2/device.js" */

/**
 * Where GL runs.
 * @param {"auto"|"worker"|"inline"} asked @returns {"worker"|"inline"}
 * @throws {EngineError} spec_invalid where there can be no Worker
 */
export function threadOf(asked) {
  const canWork = typeof Worker === "function" && typeof OffscreenCanvas === "function" && typeof globalThis.document === "object";
  if (asked === "worker" && !canWork) throw new EngineError("spec_invalid", "options.thread: worker needs a page with Worker and OffscreenCanvas; legal here: auto, inline", { field: "options.thread" });
  return asked === "inline" || !canWork ? "inline" : "worker";
}

/** The thread that will own the GL context, with nothing in it yet. @param {"worker"|"inline"} thread @returns {Promise<Channel>} */
export const open = async (thread) => (thread === "inline" ? inlineChannel() : workerChannel());

/** Ends what has no engine yet, as soon as it is open, and waits for nothing: it may never be. @param {Promise<Channel>} opening @param {EngineError} why */
export function abandon(opening, why) {
  opening.then((channel) => {
    channel.shut(why);
    channel.request("release", {}).catch(() => {});
    channel.close();
  }, () => {});
}

/**
 * @param {Promise<Channel>} opened @param {{shaderUrl: string, device: DeviceOptions}} options
 * @returns {Promise<EngineProxy>}
 */
export async function connect(opened, { shaderUrl, device }) {
  const channel = await opened;
  try {
    return new EngineProxy(channel, await channel.send("create", { shaderUrl, device }), device);
  } catch (error) {
    channel.shut(/** @type {EngineError} */ (error)); // others may wait there too
    channel.close();
    throw error;
  }
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

  /** @param {Uint8Array} bytes @returns {Promise<Restored>} */
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
