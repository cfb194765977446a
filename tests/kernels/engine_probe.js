// engine_probe.js: opens the engine in this thread, so that tests see every tensor of a step. White box; what users call is in engine_page.js.
import { Engine } from "../../browser_runtime/train/engine.js";
import { learningRate } from "../../browser_runtime/nn/schedules.js";
import { writeScalars } from "../../browser_runtime/nn/optimizers.js";
import { groupsOfPart, layoutOf, matrixOf, texelOf } from "../../browser_runtime/backends/webgl2/layout.js";
import { compileOn } from "./sessions.js";

/** @import { Session } from "../../browser_runtime/train/session.js" */

const SHADERS = new URL("../../shaders/bundle.json", import.meta.url).href;
const MOST_ENGINES = 6; // a browser keeps 16 contexts and then loses the oldest

/** @type {Map<string, Promise<Engine>>} */
const engines = new Map();

/** One engine for each set of device options: programs that were compiled once stay. @param {any} device */
async function engineFor(device = {}) {
  const key = JSON.stringify(device);
  const found = engines.get(key) ?? Engine.create({ shaderUrl: SHADERS, device });
  engines.delete(key);
  engines.set(key, found);
  if (engines.size > MOST_ENGINES) {
    const [[oldest, engine]] = engines;
    engines.delete(oldest);
    (await engine).device.dispose();
  }
  return found;
}

/**
 * @template T
 * @param {any} spec @param {any} x @param {any} y
 * @param {{device?: any, weights?: any}} options
 * @param {(session: Session) => Promise<T>} use
 */
export async function withSession(spec, x, y, { device, weights }, use) {
  const engine = await engineFor(device);
  const session = await compileOn(engine, spec, { data: { x, y } }, device);
  try {
    if (weights) session.takeWeights(weights); // also such as no run may begin with
    return await use(session);
  } finally {
    session.dispose();
  }
}

/**
 * Numbers as a texture with this layout would hold them.
 * @param {import("../../browser_runtime/backends/webgl2/layout.js").Layout} layout @param {(row: number, column: number) => number} value
 */
function laidOut(layout, value) {
  const { layers, groups, texels, texelsPerRow } = layout;
  const data = new Float32Array(layers * texels * 4);
  for (let row = 0; row < layers * groups; row++) {
    const first = ((row % layers) * texels + Math.floor(row / layers) * texelsPerRow) * 4;
    for (let column = 0; column < 4 * texelsPerRow; column++) data[first + column] = value(row, column);
  }
  return { layout: { ...layout }, texels: { shape: [layers, texels, 4], data } };
}

/**
 * A tensor as its texture holds it, with 4 lanes however many it has.
 * @param {Session} session @param {string} name @param {number} parity
 * @returns {{kind: string, batched: boolean, layout: any, rowsPerTexel: number, texels: {shape: number[], data: Float32Array}}} texels [layers, texels, 4]
 */
function stored({ executable, plan }, name, parity) {
  const { kind, batched, shape, bias } = plan.phases.train.tensors.get(name) ?? { kind: "activation", batched: true, shape: [] };
  const { slots, layout, gated } = executable.tensors.place(name);
  const { width, height, lanes } = executable.lowered.slots[slots[0]];
  const writer = executable.train.find(({ draw }) => draw.writes.some((write) => write.slots[0] === slots[0]));
  const { texels, data: numbers } = executable.tensors.readTensor(name, parity);
  const at = (/** @type {number} */ row, /** @type {number} */ column) => (column < layout.columns ? numbers[row * layout.columns + column] : 0);
  if (gated) return { kind, batched, rowsPerTexel: 0, ...laidOut(layout, at) };
  if (layout.parts) {
    const groups = groupsOfPart(layout);
    return { kind, batched, rowsPerTexel: 0, ...laidOut({ ...layout, parts: 1, groups, texels: groups * layout.texelsPerRow }, (row, column) => (row < layout.rows ? at(row, column) : 0)) };
  }
  if (writer?.draw.source.shader === "gated_grad_weights.frag.glsl") {
    // Its rows are columns of the weights. Behind them a texel has the biases of 8.
    const plain = layoutOf({ ...matrixOf(shape), layers: 4, bias }, 8192);
    const end = plain.biasRow < 0 ? plain.groups * 4 : plain.biasRow;
    const biasAt = (/** @type {number} */ column) => {
      const place = column >> 3;
      return at(8 * (Math.ceil(plain.columns / 8) + Math.floor(place / layout.texelsPerRow)) + (column & 7), 4 * (place % layout.texelsPerRow));
    };
    const turned = (/** @type {number} */ row, /** @type {number} */ column) => (row < end ? at(column, row) : row === end ? biasAt(column) : 0);
    return { kind, batched, rowsPerTexel: 0, ...laidOut(plain, (row, column) => (column < plain.columns ? turned(row, column) : 0)) };
  }
  const data = new Float32Array(layout.layers * layout.texels * 4);
  for (let place = 0; place < layout.layers * layout.groups; place++) {
    const [group, layer] = [Math.floor(place / layout.layers), place % layout.layers];
    const spread = layout.spread && place < layout.groups * layout.layers - (layout.biasRow < 0 ? 0 : layout.layers);
    const row = spread ? 32 * (group >> 2) + 4 * (group & 3) + 16 * (layer >> 2) + (layer & 3) : place;
    const first = (row % layout.layers) * layout.texels + Math.floor(row / layout.layers) * layout.texelsPerRow;
    for (let n = 0; n < layout.texelsPerRow; n++) {
      const from = texelOf({ ...layout, spread: false }, { width, height }, place, n) * lanes;
      data.set(texels.subarray(from, from + lanes), (first + n) * 4);
    }
  }
  // Row losses: a texel holds those of the rows of the fragment that wrote it.
  const rowsPerTexel = kind === "rows" ? writer?.draw.source.domain.layers ?? 0 : 0;
  return { kind, batched, layout: { ...layout }, rowsPerTexel, texels: { shape: [layout.layers, layout.texels, 4], data } };
}

/**
 * One training step, group by group: what each kernel read and wrote.
 * @param {any} spec @param {any} x @param {any} y
 * @param {{device?: any, weights?: any, steps?: number, batch?: number}} [options] `steps` real ones before; `batch` of the epoch
 */
export async function inspect(spec, x, y, options = {}) {
  const { steps = 0, batch = 0 } = options;
  return withSession(spec, x, y, options, async (session) => {
    if (steps > 0) await session.run({ steps });
    const { executable, plan, batches, totalSteps } = session;
    const { optimizer } = session.spec;
    const rows = batches.rows(batch);
    const firstRow = batch * executable.sizes.batch;
    const lr = learningRate(optimizer, session.step, totalSteps);
    executable.evaluator.setOrder("epoch", batches.order(0, executable.sizes.batch));
    executable.steps.set(0, rows, firstRow, 1 / rows, session.step);
    writeScalars(session.spec, lr, session.step + 1, executable.steps.scalars[0]);

    const now = executable.tensors.parity;
    /** @type {any[]} */
    const groups = [];
    executable.inspect((index) => {
      const group = executable.lowered.training.groups[index];
      const read = (/** @type {string[]} */ names, /** @type {boolean} */ after) =>
        Object.fromEntries(
          names.map((name) => {
            const kind = plan.phases.train.tensors.get(name)?.kind ?? "";
            // What this batch has added up lies where the next one reads it.
            const written = after ? ["parameter", "state", "buffer", "accumulator"] : group.kernel === "accumulate" ? [] : ["accumulator"];
            return [name, stored(session, name, written.includes(kind) ? now ^ 1 : now)];
          }),
        );
      const made = group.ops.flatMap((op) => [...Object.values(op.outputs), `statistics of ${op.inputs.z}`]);
      groups.push({
        ops: [...group.recomputed, ...group.ops],
        shaders: executable.lowered.phases.train[index].map(({ source }) => source.shader),
        inputs: read(Object.values(group.inputs), false),
        outputs: read(made.filter((name) => executable.lowered.places.has(name)), true),
      });
    });
    executable.reduce("train", 0);
    const sums = (await executable.readTelemetry("train", 1))(0, 0);
    return { groups, sums, rows, firstRow, aligned: executable.sizes.batch, lr, t: session.step + 1, optimizer, record: session.record };
  });
}

/**
 * What textures of one lane hold, read as the device says and with the 4 lanes that every device reads: row losses, targets in training and staged.
 * @param {any} spec @param {any} x @param {any} y @param {{device?: any, weights?: any}} options
 */
export async function readsOfOneLane(spec, x, y, options) {
  return withSession(spec, x, y, options, async (session) => {
    await session.run({ steps: 1 });
    await session.evaluate({ x, y });
    const { device, executable } = session;
    const read = async () => [
      executable.tensors.readRows("loss", y.shape[0]), executable.tensors.readEpoch("target", 0, y.shape[0]), await executable.tensors.readTensorLater("stage of target", y.shape[0]),
    ];
    device.oneLane = undefined;
    const asked = await read();
    device.oneLane = false;
    const always = await read();
    device.oneLane = undefined;
    return { asked, always };
  });
}
