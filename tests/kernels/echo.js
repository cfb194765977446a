// echo.js: what test_harness.py calls in the page.

/** @param {unknown} value */
export function echo(value) {
  return value;
}

/** @param {string} message */
export async function fail(message) {
  throw Object.assign(new RangeError(message), { code: "spec_invalid" });
}

export function hang() {
  return new Promise(() => {});
}

export async function environment() {
  const bundle = await (await fetch("/shaders/bundle.json")).json();
  return {
    isolated: globalThis.crossOriginIsolated,
    webgl2: new OffscreenCanvas(1, 1).getContext("webgl2") !== null,
    shaders: Object.keys(bundle),
  };
}
