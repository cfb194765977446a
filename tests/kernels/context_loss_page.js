// context_loss_page.js: loses the GPU process between a step and a read, then asks the session for all that it can read.
import { Engine } from "../../browser_runtime/train/engine.js";
import { compileOn } from "./sessions.js";

const SHADERS = new URL("../../shaders/bundle.json", import.meta.url).href;

/** @import { Session } from "../../browser_runtime/train/session.js" */

/** What reads the device, or asks it whether programs are compiled. @type {Record<string, (session: Session, x: any, y: any) => any>} */
const reads = {
  checkpoint: (session) => session.checkpoint(),
  getWeights: (session) => session.getWeights(),
  weightsFile: (session) => session.weightsFile(),
  predict: (session, x) => session.predict(x),
  evaluate: (session, x, y) => session.evaluate({ x, y }),
  validation: (session) => session.evaluate(),
  telemetry: (session) => session.run({ steps: 4 }),
  diagnose: (session) => session.diagnose("basic"),
  compile({ device, spec }, x, y) {
    const other = structuredClone(spec);
    other.model.layers[0].units += 4; // so that no program is there already
    return compileOn(new Engine(device), other, { data: { x, y } });
  },
  rows({ executable, plan }) {
    const rows = [...plan.phases.train.tensors].find(([, { kind }]) => kind === "rows");
    return executable.tensors.readRows(/** @type {NonNullable<typeof rows>} */ (rows)[0], 4);
  },
};

/**
 * Ways in which the process is lost; each returns how to undo it. `zeros` is what was seen of a process that had just been killed, made to
 * last: every read gives zeros, while neither an error nor the loss is reported yet.
 * @type {Record<string, (url: string) => () => void>}
 */
const losses = {
  none: () => () => {},
  zeros() {
    const prototype = /** @type {any} */ (WebGL2RenderingContext.prototype);
    const { readPixels, getBufferSubData } = prototype;
    prototype.readPixels = function (/** @type {any[]} */ ...args) {
      if (typeof args[6] === "object") args[6].fill(0);
    };
    prototype.getBufferSubData = (/** @type {number} */ _target, /** @type {number} */ _offset, /** @type {Uint8Array} */ out) => void out.fill(0);
    return () => void Object.assign(prototype, { readPixels, getBufferSubData });
  },
  killed(url) {
    // Synchronous: the process is dead once this returns, and the browser has had no chance to tell us.
    const request = new XMLHttpRequest();
    request.open("GET", url, false);
    request.send();
    if (request.status !== 204) throw new Error(`the GPU process was not killed: ${request.status}`);
    return () => {};
  },
};

/**
 * @param {any} spec @param {any} x @param {any} y
 * @param {{read: string, loss: string, killUrl?: string}} options
 * @returns {Promise<{code: string|null, points: number}>} how the read failed, null if it did not; points of the curve after
 *   the loss
 */
export async function readAfterLoss(spec, x, y, { read, loss, killUrl = "" }) {
  const engine = await Engine.create({ shaderUrl: SHADERS });
  const session = await compileOn(engine, spec, { data: { x, y } });
  await session.run({ steps: 3 });
  let points = 0;
  const handOver = session.progress.handOver.bind(session.progress);
  session.progress.handOver = (onTelemetry) => handOver((some) => ((points += some.length), onTelemetry?.(some)));
  const undo = losses[loss](killUrl);
  try {
    // In the task of the loss itself: no event of it can have come before.
    await reads[read](session, x, y);
    return { code: null, points };
  } catch (/** @type {any} */ error) {
    return { code: error.code ?? String(error.stack), points };
  } finally {
    undo();
    session.dispose();
    engine.device.dispose();
  }
}
