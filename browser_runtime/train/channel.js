// Channel: the messages between the page and the thread that owns the GL context, a Worker's or its own.
import { EngineError } from "../errors.js";
import { dataField, eachInput, mapValues } from "../nn/inputs.js";
import { ask, owned, posted } from "./sources.js";
import { failureOf, startWorker } from "./start_worker.js";

/** @import { ModelInput } from "../nn/inputs.js" */
/** @import { Data } from "./data.js" */
/** @import { Point } from "./pipeline.js" */
/** @import { RunRecord } from "./run_record.js" */
/** @import { ArraySource } from "./sources.js" */

/** Calls the other side: `send(method, args, hooks)`. @typedef {(method: string, args: any, hooks?: Hooks) => Promise<any>} Send */
/** `onMissed` gets what comes after `onPoints` has failed. @typedef {{signal?: AbortSignal, onPoints?: (points: Point[]) => any, onMissed?: (points: Point[]) => void, onState?: (state: SessionState) => void}} Hooks */
/** @typedef {{step: number, totalSteps: number, done: boolean, record: Omit<RunRecord, "normalization">}} SessionState */

/** The other side's messages, to whoever waits for them. */
export class Channel {
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

/** The engine in a Worker. */
export function workerChannel() {
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
export async function inlineChannel() {
  const { serve } = await import("./serve.js").catch((cause) => {
    throw new EngineError("internal", `a module of the engine can't be loaded: ${cause.message}`, { cause });
  });
  /** @type {Channel} */
  let channel;
  const handle = serve((message) => queueMicrotask(() => void channel.receive(message)));
  channel = new Channel((message) => void handle(message), () => {});
  return channel;
}
