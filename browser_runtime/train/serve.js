// Serve: the engine's side of the messages of channel.js, in the thread that owns the GL context.
import { EngineError } from "../errors.js";
import { eachInput, mapValues, shapesOf } from "../nn/inputs.js";
import { Engine } from "./engine.js";

/** @import { ModelInput } from "../nn/inputs.js" */
/** @import { Session } from "./session.js" */

/**
 * @param {(message: any, transfer?: Transferable[]) => void} post
 * @returns {(message: any) => Promise<void>} handles one message of the page's
 */
export function serve(post) {
  /** @type {import("./engine.js").Code|undefined} */
  let code;
  /** @type {Engine} */
  let engine;
  /** @type {Map<number, Session>} */
  const sessions = new Map();
  /** @type {Map<number, AbortController>} */
  const cancels = new Map();
  /** @type {Map<number, {field: string, resolve: (values: ArrayLike<number>) => void, reject: (error: EngineError) => void}>} */
  const reads = new Map();
  let nextRead = 0;
  let nextSession = 0;

  /** What is in the page's memory, or behind its callbacks, is read there. @param {any} source */
  function remoteSource(source) {
    if (!source?.remote) return source;
    const { remote, ...described } = source;
    return {
      ...described,
      read: (/** @type {number} */ start, /** @type {number} */ count, /** @type {AbortSignal|undefined} */ signal) =>
        new Promise((resolve, reject) => {
          const read = nextRead++;
          reads.set(read, { field: described.field, resolve, reject });
          signal?.addEventListener("abort", () => reads.delete(read), { once: true }); // the page may never answer
          post({ read, source: remote, start, count });
        }),
    };
  }

  /** @param {ModelInput} input @param {any} x */
  const remoteInputs = (input, x) => eachInput(input, x, remoteSource);

  /** @param {ModelInput} input @param {any} data @returns {any} */
  const remoteSources = (input, data) => {
    if (!data) return data;
    const { x, ...others } = data;
    return { x: remoteInputs(input, x), ...mapValues(others, remoteSource) };
  };

  /** @type {Record<string, (args: any, call: number) => any>} */
  const methods = {
    /** Nothing is made. */
    async load({ shaderUrl }) {
      const loading = (code ??= Engine.load(shaderUrl));
      try {
        await Promise.all(Object.values(loading));
      } catch (error) {
        code = undefined; // once more, whoever asks next
        throw error;
      }
    },
    async create(options, call) {
      code ??= Engine.load(options.shaderUrl);
      engine = await Engine.create(options, code, cancels.get(call)?.signal);
      engine.device.onLost.push(() => post({ lost: true }));
      return engine.probe();
    },
    probe: () => engine.probe(),
    release() {
      for (const cancel of cancels.values()) cancel.abort();
      for (const session of sessions.values()) session.dispose();
      sessions.clear();
      engine?.device.dispose();
    },
    async compile({ planned, data, initialWeights }, call) {
      const sources = remoteSources(shapesOf(planned.spec.model.input), data);
      const session = await engine.compile(planned, { data: sources, initialWeights, signal: cancels.get(call)?.signal });
      sessions.set(++nextSession, session);
      return { session: nextSession, state: stateOf(session), normalization: session.normalizationRecord };
    },
    run: ({ session, steps }, call) =>
      get(session).run({ steps, signal: cancels.get(call)?.signal, onTelemetry: (points) => post({ call, points, state: stateOf(get(session)) }) }),
    evaluate: ({ session, data }) => get(session).evaluate(remoteSources(get(session).spec.model.input, data)),
    predict: ({ session, x }) => get(session).predict(remoteInputs(get(session).spec.model.input, x)),
    getWeights: ({ session }) => get(session).getWeights(),
    setWeights: ({ session, weights }) => get(session).setWeights(weights),
    weightsFile: ({ session }) => get(session).weightsFile(),
    checkpoint: ({ session }) => get(session).checkpoint(),
    restore: ({ session, bytes }) => get(session).restore(bytes),
    diagnose: ({ session, level }) => get(session).diagnose(level),
    dispose({ session }) {
      get(session).dispose();
      sessions.delete(session);
    },
  };

  /** @param {number} id */
  function get(id) {
    const session = sessions.get(id);
    if (!session) throw new EngineError("disposed", "this session is disposed");
    return session;
  }

  /** @param {any} args of a call */
  function state(args) {
    const session = sessions.get(args?.session);
    return session && stateOf(session);
  }

  return async (message) => {
    const { call, method, args, abort, read, values, failed } = message;
    if (read !== undefined) {
      const asked = reads.get(read);
      reads.delete(read);
      if (failed === undefined) asked?.resolve(values);
      else asked?.reject(new EngineError("data_invalid", `${asked.field}: ${failed}`, { field: asked.field }));
      return;
    }
    if (abort) {
      cancels.get(call)?.abort();
      return;
    }
    cancels.set(call, new AbortController());
    try {
      const result = await methods[method](args, call);
      post({ call, result, state: state(args) }, transfers(result));
    } catch (error) {
      post({ call, error: plain(error), state: state(args) });
    } finally {
      cancels.delete(call);
    }
  };
}

/** What the page may read of a session without asking. @param {Session} session */
const stateOf = (session) => ({ step: session.step, totalSteps: session.totalSteps, done: session.done, record: session.record });

/** Large results are handed over, not copied. @param {any} result @returns {Transferable[]} */
function transfers(result) {
  if (result instanceof Uint8Array || result instanceof Float32Array) return [result.buffer];
  if (result?.data instanceof Float32Array) return [result.data.buffer];
  return [];
}

/** @param {any} error */
function plain(error) {
  if (error instanceof EngineError) return { code: error.code, message: error.message, field: error.field, detail: error.detail };
  const aborted = error?.name === "AbortError";
  return { code: aborted ? "aborted" : "internal", message: aborted ? "cancelled" : String(error?.message ?? error), field: null, detail: { stack: String(error?.stack ?? "") } };
}
