// What the engine tests call in the page: trains through the public module and returns plain values.
import { compile, train } from "../../browser_runtime/texelgrad.js";

/** Trains a spec to its end, without metrics where no rows validate. @param {any} spec @param {any} x @param {any} y @param {any} [options] */
export async function run(spec, x, y, options = {}) {
  return train(spec.data?.validation ? spec : { ...spec, metrics: [] }, { x, y }, options);
}

/** Trains, then diagnoses. @param {any} spec @param {any} x @param {any} y @param {any} [options] */
export async function runAndDiagnose(spec, x, y, options = {}) {
  const session = await compile(spec, { ...options, data: { x, y } });
  try {
    /** @type {any[]} */
    const history = [];
    await session.run({ onTelemetry: (points) => history.push(...points) });
    return { history, report: await session.diagnose("basic"), record: session.record };
  } finally {
    await session.dispose();
  }
}
