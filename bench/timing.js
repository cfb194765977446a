// What the bench asks of a contender, and how many steps fill a time.

/**
 * One training under way.
 * @typedef {object} Training
 * @property {(steps: number) => Promise<number>} run trains; resolves once the device has done it all, to the last step's loss
 * @property {() => Record<string, any>} facts what the contender says of itself: renderer, bytes, version
 * @property {() => void|Promise<void>} dispose
 * @property {any} [session] our engine's own
 */
/**
 * A library on one of its backends.
 * @typedef {object} Contender
 * @property {(workload: import("./workloads.js").Workload) => (() => Promise<Training>)} prepare makes data and weights, which is not measured;
 *   what it returns sets the backend up where that is not done yet, uploads and compiles
 * @property {() => void|Promise<void>} [release]
 */

/** Steps that take about `ms`; finding them warms up. @param {Training} training @param {number} ms @returns {Promise<number>} */
export async function calibrate(training, ms) {
  let steps = 1;
  for (;;) {
    const start = performance.now();
    await training.run(steps);
    const took = Math.max(performance.now() - start, 0.05);
    if (took > ms / 3) return Math.max(1, Math.round((steps * ms) / took));
    steps = Math.ceil(steps * Math.min(8, Math.max(1.5, ms / 2 / took)));
  }
}

/** Loops over steps without holding the page's thread for long: callbacks of the GPU need it now and then.
 * @param {number} steps @param {(i: number) => void} step @param {number} [ms] */
export async function inSlices(steps, step, ms = 100) {
  let since = performance.now();
  for (let i = 0; i < steps; i++) {
    step(i);
    if (performance.now() - since > ms) {
      await new Promise((resolve) => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = resolve;
        port2.postMessage(null);
      });
      since = performance.now();
    }
  }
}
