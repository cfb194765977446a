// embedding_probe.js: what a page has of the engine, by name, for test_docs.py.
import * as engine from "../../browser_runtime/texelgrad.js";
import { OPTIONS } from "../../browser_runtime/train/options.js";
import { SessionProxy } from "../../browser_runtime/train/remote.js";

const INNER = ["constructor", "call"]; // of sessions

/** @returns {{functions: string[], options: string[], session: string[]}} */
export function names() {
  return {
    functions: Object.keys(engine).filter((name) => /^[a-z]/.test(name)),
    options: [...new Set(Object.values(OPTIONS).flatMap(Object.keys))].filter((name) => name in OPTIONS.compile || name === "onTelemetry"),
    session: Object.getOwnPropertyNames(SessionProxy.prototype).filter((name) => !INNER.includes(name)),
  };
}
