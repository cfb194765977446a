// Waiting: for what may never come, until somebody no longer wants it.
import { EngineError } from "../errors.js";

/**
 * What is waited for, which goes on, unless the signal ends the wait.
 * @template T @param {Promise<T>} promise @param {AbortSignal} [signal] @returns {Promise<T>}
 * @throws {EngineError} aborted
 */
export async function unlessAborted(promise, signal) {
  if (!signal) return promise;
  /** @type {() => void} */
  let abort = () => {};
  /** @type {Promise<never>} */
  const aborted = new Promise((_, reject) => (abort = () => reject(new EngineError("aborted", "cancelled while the engine started"))));
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener("abort", abort));
}
