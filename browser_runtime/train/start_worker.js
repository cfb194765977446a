// Start worker: the Worker that owns the GL context, and what to do where a page may not have it.
import { EngineError } from "../errors.js";

/** What a page may choose otherwise. */
const FIELD = "options.thread";
const URL_OF_WORKER = new URL("./worker.js", import.meta.url);

/** @throws {EngineError} spec_invalid where the page may not start it */
export function startWorker() {
  try {
    return new Worker(URL_OF_WORKER, { type: "module", name: "texelgrad" });
  } catch (cause) {
    const why = whyRefused(/** @type {Error} */ (cause));
    throw new EngineError("spec_invalid", `${FIELD}: the engine's Worker ${URL_OF_WORKER} ${why}, or take thread: "inline"`, { field: FIELD, cause });
  }
}

/** What the browser says, and what to do. @param {Error} cause */
function whyRefused({ name, message }) {
  if (name === "SecurityError") return `is not of the page's origin, ${globalThis.location.origin}: serve browser_runtime/ from there`;
  if (/TrustedScriptURL/.test(message)) return "is refused by the page's Trusted Types: let the createScriptURL of a default policy pass this address";
  return `can't be started (${message}): let the page's Content-Security-Policy allow it (worker-src)`;
}

/** What became of one that was started. @param {ErrorEvent} event which has no message where a file was not loaded */
export function failureOf({ message }) {
  if (message !== undefined) return new EngineError("internal", `the engine's Worker ${URL_OF_WORKER} failed: ${message}`);
  const needed = "it and its modules must be there as JavaScript, the page's worker-src must allow it, and where the page has Cross-Origin-Embedder-Policy it needs that header too";
  return new EngineError("internal", `${FIELD}: the engine's Worker ${URL_OF_WORKER} could not be loaded: ${needed}; or take thread: "inline"`, { field: FIELD });
}
