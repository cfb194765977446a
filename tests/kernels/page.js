// page.js: the test page's only entry point, called over CDP by harness.py.
import { decode, encode } from "./codec.js";

/**
 * Imports a module and calls one of its functions.
 * @param {string} path from the server's root, e.g. "/browser_runtime/nn/random.js"
 * @param {string} name of the exported function, which may be async
 * @param {string} argumentsJson
 * @returns {Promise<string>} JSON `{value}` or `{error}`
 */
async function call(path, name, argumentsJson) {
  try {
    const module = await import(path);
    if (typeof module[name] !== "function") {
      throw new TypeError(`${path} exports no function ${name}; it exports ${Object.keys(module).join(", ")}`);
    }
    return JSON.stringify({ value: encode(await module[name](...decode(JSON.parse(argumentsJson)))) });
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    return JSON.stringify({
      error: { name: error.name, message: error.message, stack: error.stack ?? "", properties: encode({ ...error }) },
    });
  }
}

Object.assign(globalThis, { texelgradTest: { call } });
