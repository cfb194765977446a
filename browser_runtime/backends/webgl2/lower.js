// Lower: from the plan to textures, kernel sources and a fixed list of draws for one device. Pure: no GL, so it also estimates.
import { EngineError } from "../../errors.js";
import { Arena } from "./arena.js";
import { makeDraw } from "./draw.js";
import { ROWS, samplesFor } from "./fragment_rows.js";
import { computedOperands } from "./computed_operands.js";
import { gatedGradients } from "./gated_gradients.js";
import { atOnce, BLOCK, largestPower, MAX_TRIPS } from "./kernels/common.js";
import { kernels } from "./kernels/index.js";
import { bytesOf, ceilDiv, columnsOf, lanesOf, layoutOf, matrixOf, RESIDENT_BYTES, ROW_ALIGNMENT, rowsPerFragment, roundUp } from "./layout.js";
import { Lowering } from "./lowering.js";
import { delayUpdates } from "./order.js";
import { fedAt, orderAt, OUTPUTS, STEP_NORMS } from "./places.js";
import { parameterTextures, updatedAtOnce } from "./regions.js";
import { blockOf, UNIFORM_ROWS, uniformGradients, uniformProducts, uniformWeights } from "./uniform_rows.js";

/** @import { Draw, Place } from "./draw.js" */
/** @import { RowsWanted } from "./fragment_rows.js" */
/** @import { Lanes, Layout, Numbers } from "./layout.js" */
/** @import { Phase, Plan } from "../../plan/plan.js" */

/** Share of them for the ring of batches through which data is streamed. */
const RING_SHARE = 1 / 16;
/** Bytes of numbers that are held outside of textures, at most. */
export const MAX_HELD_BYTES = 2 ** 32;
/** Lines of the telemetry texture at most: each holds the sums of one such draw. */
const TELEMETRY_LINES = 24;
/** Batches in flight of an evaluation, at most. */
const MAX_SLOTS = 32;
/** Bytes of a batched tensor that may live up to the end of a step, so that updates wait for one another. */
const SMALL_BYTES = 64 << 10;
/** Texels of row losses that one fragment sums. */
const TEXELS_OF_PART = 4096;

/**
 * What is known of the device, or assumed for an estimate.
 * @typedef {{maxDrawBuffers: number, maxTextureSize: number, maxArrayLayers: number, copiedBlockBytes?: number, residentBytes?: number,
 *   software?: boolean}} Limits
 */

/** Rows of the data. @typedef {{total: number, train: number, validation: number, batch: number}} Rows */

/** The sums of the batches in flight, in `parts` for each, which the host adds; `norm`: whether the norms of their gradients come along.
 * @typedef {{draw: Draw, lines: number, parts: number, norm: boolean}} Reduction `lines` of the telemetry: as many as its texture is high enough for */

/** How a phase runs: on batches of so many rows, from where, and which of its products take rows from uniform blocks.
 * @typedef {{phase: Phase, batchRows: number, source: "epoch"|"stage", uniform: Map<string, import("./uniform_rows.js").UniformProduct>}} Run */

/**
 * @typedef {object} Lowered
 * @property {import("./arena.js").Texture[]} textures
 * @property {import("./arena.js").Slot[]} slots where in them
 * @property {number} bytes of all textures and of the buffers beside them
 * @property {Map<string, Place>} places
 * @property {{name: string, values: number[]}[]} constants what they hold
 * @property {import("../../plan/plan.js").Phase} training the plan's, its groups in the order in which they are drawn
 * @property {{train: Draw[][], evaluate: Draw[][], predict: Draw[][]}} phases for each group, its draws
 * @property {{batch: Draw[], end: Draw[]}} step those of training in their order: of every batch, and what the last one of a step runs besides
 * @property {number} updatesFrom the first group of training that waits for a step's last batch; beyond the last where none does
 * @property {{epoch: Draw[], stage: Draw[]}} gathers from the data set, into an epoch of batches and into the staging rows
 * @property {string[]} fed names of what comes with the data
 * @property {{train: Reduction, evaluate: Reduction}} reductions
 * @property {{batch: number, stage: number, trainSlots: number, evaluateSlots: number, ring: number}} sizes
 *   rows of a batch and of the staging tensors (aligned), batches in flight, batches that are on the device at once
 * @property {boolean} streamed whether the data set stays outside of textures
 */

/** Batches of the ring: two at least, so that one is uploaded while another is read. @param {number} batchBytes @param {number} residentBytes */
const ringOf = (batchBytes, residentBytes) => Math.max(2, Math.floor((residentBytes * RING_SHARE) / batchBytes));

/** A draw of one row a fragment can't be made narrower. @param {Draw[]} draws @param {number} maxDrawBuffers */
function requireTargets(draws, maxDrawBuffers) {
  for (const { source } of draws) {
    const targets = source.writes.reduce((sum, write) => sum + write.targets, 0);
    if (targets > maxDrawBuffers) {
      throw new EngineError("no_float_targets", `${source.shader} writes ${targets} float32 render targets; the device has ${maxDrawBuffers}`);
    }
  }
}

/** Rows that are evaluated or predicted at once. @param {Rows} rows */
export const stageOf = ({ batch, validation }) => roundUp(Math.min(Math.max(validation, 256), Math.max(batch, 1024)), ROW_ALIGNMENT);

/**
 * @param {Plan} plan
 * @param {Limits} limits
 * @param {Rows} rows
 * @param {RowsWanted} [wanted] what suits the device where left out
 * @returns {Lowered}
 * @throws {EngineError} too_large, with the figures, where the device can't hold it
 */
export function lower(plan, limits, rows, wanted = limits.software === false ? ROWS.gpu : ROWS.software) {
  const arena = new Arena(limits.maxTextureSize);
  const batch = roundUp(rows.batch, ROW_ALIGNMENT);
  const batches = ceilDiv(rows.train, rows.batch);
  const stage = stageOf(rows);
  const layers = rowsPerFragment(4, limits.maxDrawBuffers);
  const layoutFor = (/** @type {Parameters<typeof layoutOf>[0]} */ matrix) => layoutOf(matrix, limits.maxTextureSize);
  const columns = Object.fromEntries(Object.entries(plan.fed).map(([name, shape]) => [name, columnsOf(shape)]));
  const fedNames = Object.keys(plan.fed);
  if (batch / ROW_ALIGNMENT > MAX_TRIPS) {
    throw new EngineError("too_large", `a batch of ${rows.batch} rows is too long for one draw; at most ${MAX_TRIPS * ROW_ALIGNMENT}`, {
      field: "train.batch_size",
    });
  }

  /** @type {Map<string, Place>} */
  const places = new Map();
  const put = (/** @type {string} */ name, /** @type {Place} */ place) => {
    if (places.has(name)) throw new Error(`${name} has a place already`);
    places.set(name, place);
  };
  const own = (/** @type {string} */ name, /** @type {Layout} */ layout, { fed = false, numbers = /** @type {Numbers} */ ("float"), lanes = /** @type {Lanes} */ (4) } = {}) => {
    const slot = arena.own(name, layout, { numbers, lanes });
    put(name, { slots: [slot, slot], layout, fed });
  };
  const data = (/** @type {string} */ name) => layoutFor({ rows: rows.total, ...columns[name], layers: 1 });
  const epoch = (/** @type {string} */ name, /** @type {number} */ count) => layoutFor({ rows: count * batch, ...columns[name], layers });
  const dataTextures = fedNames.flatMap((name) => [data(name), epoch(name, batches)]);
  const residentBytes = limits.residentBytes ?? RESIDENT_BYTES;
  const streamed = bytesOf(dataTextures, limits.maxTextureSize) > residentBytes;
  const heldBytes = 4 * rows.total * Object.values(columns).reduce((sum, { columns: each }) => sum + each, 0);
  if (streamed && heldBytes > MAX_HELD_BYTES) {
    throw new EngineError("too_large", `data: ${rows.total} rows are ${heldBytes} bytes, which do not fit textures; at most ${MAX_HELD_BYTES} are held outside of them`, { field: "data" });
  }
  const ring = streamed ? Math.min(batches, ringOf(bytesOf(fedNames.map((name) => epoch(name, 1)), Infinity), residentBytes)) : batches;
  for (const name of fedNames) {
    const lanes = lanesOf(data(name));
    if (!streamed) own(fedAt("data", name), data(name), { lanes });
    own(fedAt("epoch", name), epoch(name, ring), { fed: true, lanes });
    own(fedAt("stage", name), layoutFor({ rows: stage, ...columns[name], layers }), { lanes });
  }
  if (!streamed) {
    own(orderAt("epoch"), layoutFor({ rows: batches * batch, columns: 1, layers: 1 }), { fed: true, numbers: "int", lanes: 1 });
    own(orderAt("stage"), layoutFor({ rows: roundUp(Math.max(rows.validation, 1), stage), columns: 1, layers: 1 }), { fed: true, numbers: "int", lanes: 1 });
  }

  const outputs = 1 + plan.states.length;
  if (outputs > limits.maxDrawBuffers) {
    throw new EngineError("no_float_targets", `this optimizer writes ${1 + plan.states.length} render targets; the device has ${limits.maxDrawBuffers}`);
  }
  const gatedNames = gatedGradients(plan.phases.train, batch, wanted, limits);
  const uniform = uniformProducts(plan.phases.train, batch, wanted, limits, gatedNames);
  const inQuads = new Set([...uniformGradients(plan.phases.train, batch, uniform, wanted).values()].flatMap(({ w }) => w ?? []));
  const textures = parameterTextures(plan, limits, wanted, outputs, uniformWeights(plan.phases.train, uniform), inQuads);
  for (const members of textures) {
    const stack = (/** @type {string} */ state) => arena.stack(members.map(({ parameter, layout }) => ({ name: `${parameter.tensor}${state}`, layout })));
    const [{ parameter: { trainable } }] = members;
    for (const state of ["", ...(trainable ? plan.states.map((name) => `.${name}`) : [])]) {
      const even = stack(state);
      const odd = trainable ? stack(state) : even;
      members.forEach(({ parameter: { tensor }, layout }, i) => put(`${tensor}${state}`, { slots: [even[i], odd[i]], layout, fed: false }));
    }
  }
  // Gradients that are added up over the batches of a step: what one batch writes the next one reads.
  for (const { name, shape, bias, kind } of plan.phases.train.tensors.values()) {
    if (kind !== "accumulator") continue;
    const layout = layoutFor({ ...matrixOf(shape), layers: rowsPerFragment(4, limits.maxDrawBuffers), bias });
    put(name, { slots: [arena.own(name, layout), arena.own(name, layout)], layout, fed: false, clock: "batch" });
  }
  for (const { tensor, shape, moves } of plan.buffers) {
    const layout = layoutFor({ rows: 1, columns: shape[0], layers: 1 });
    const slot = arena.own(tensor, layout);
    put(tensor, { slots: [slot, moves ? arena.own(tensor, layout) : slot], layout, fed: false, clock: "batch" });
  }

  // What a loss or a layer was given with the spec; written once.
  const constants = [...plan.phases.train.tensors.values()].filter(({ kind }) => kind === "constant");
  for (const { name, shape } of constants) own(name, layoutFor({ rows: 1, ...columnsOf(shape), layers: 1 }));

  // Updates into one texture wait for one another, so that they are one render pass.
  const together = new Set(textures.filter(({ length }) => length > 1).flatMap((members) => members.map(({ parameter }) => parameter.tensor)));
  const isSmall = (/** @type {string} */ name) => {
    const { shape, batched } = /** @type {import("../../nn/graph.js").Tensor} */ (plan.phases.train.tensors.get(name));
    return batched && layoutFor({ rows: batch, ...columnsOf(shape), layers: 1 }).texels * 16 <= SMALL_BYTES;
  };
  const delayed = delayUpdates(plan.phases.train, (group) => together.has(updatedAtOnce(group) ?? ""), isSmall);
  const { phase: training, operands } = computedOperands(delayed, batch, wanted, limits, uniform);
  const gradients = uniformGradients(training, batch, uniform, wanted);

  const accumulates = [...plan.phases.train.tensors.values()].some(({ kind }) => kind === "accumulator");
  const updatesFrom = training.groups.findIndex(({ kernel }) => kernel === "update" || kernel === "grad_norm");

  // Training says which tensors lie as such products write them: a small batch gains nothing from what suits the many rows of an evaluation.
  const quadWidths = new Set([...uniform.values()].map(({ result }) => result));
  /** @returns {Run} */
  const staged = (/** @type {Phase} */ phase) => {
    const products = [...uniformProducts(phase, stage, wanted, limits)].filter(([, { result }]) => quadWidths.has(result));
    return { phase, batchRows: stage, source: "stage", uniform: new Map(products) };
  };
  /** @type {Record<"train"|"evaluate"|"predict", Run>} */
  const runs = { train: { phase: training, batchRows: batch, source: "epoch", uniform }, evaluate: staged(plan.phases.evaluate), predict: staged(plan.phases.predict) };
  // One buffer, and one texture to fill it from, serve all products that want it, one after the other.
  const all = Object.values(runs);
  const blocks = all.flatMap(({ batchRows, uniform }) => [...uniform.values()].map(({ operand }) => ({ texels: blockOf(operand), groups: batchRows / UNIFORM_ROWS })));
  const most = (/** @type {"texels"|"groups"} */ key) => Math.max(...blocks.map((block) => block[key]));
  const arranged = blocks.length === 0 ? undefined : arena.own("rows of products", layoutFor({ rows: most("groups"), columns: 4 * most("texels"), layers: 1 }), { copied: true });

  /** @type {number[]} */
  const shared = [];
  const lowerPhase = (/** @type {Run} */ { phase, batchRows, source, uniform }, mostSlots = wanted.slots ?? MAX_SLOTS) => {
    const fixed = new Map(places);
    for (const fed of fedNames) fixed.set(fed, /** @type {Place} */ (places.get(fedAt(source, fed))));
    const { maxDrawBuffers, maxArrayLayers } = limits;
    const lowering = new Lowering({
      uniformGradients: phase === training ? gradients : new Map(), arena, maxDrawBuffers, mostSlots: Math.min(mostSlots, maxArrayLayers), wanted, batchRows, shared, uniform, gatedNames, operands, quadWidths, arranged, fixed, phase,
    });
    const draws = phase.groups.map((group) => kernels[group.kernel](lowering, group));
    return { draws, lowering };
  };
  const train = lowerPhase(runs.train);
  // Nothing of a step is left when an evaluation begins.
  shared.push(...train.lowering.scratches);
  const evaluate = lowerPhase(runs.evaluate, Math.min(MAX_SLOTS, Math.max(1, ceilDiv(rows.validation, stage))));
  const predict = lowerPhase(runs.predict);
  put(OUTPUTS, predict.lowering.place(plan.output));
  for (const [name, place] of train.lowering.places) if (!places.has(name)) places.set(name, place);

  const gather = (/** @type {string} */ name, /** @type {"epoch"|"stage"} */ to) => {
    const place = (/** @type {string} */ key) => /** @type {Place} */ (places.get(key));
    const out = place(fedAt(to, name));
    return makeDraw(arena, "gather", {
      trips: 0,
      defines: {},
      reads: [{ name: "S", place: place(fedAt("data", name)) }, { name: "ORDER", place: place(orderAt(to)) }],
      writes: [{ name: "E", slots: out.slots, layers: out.layout.layers }],
      domain: out.layout,
    });
  };
  const reduction = (/** @type {Lowering} */ lowering) => {
    const [accuracy, norm] = ["correct", STEP_NORMS].map((name) => lowering.places.has(name));
    const { groups, texelsPerRow } = lowering.place("loss").layout;
    const texels = groups * texelsPerRow;
    const texelsOfPart = roundUp(ceilDiv(texels, Math.min(groups, ceilDiv(texels, TEXELS_OF_PART))), ROW_ALIGNMENT);
    const parts = ceilDiv(texels, texelsOfPart);
    const together = largestPower(samplesFor(wanted.samples, texels * lowering.slots), texels);
    const lines = Math.max(1, Math.min(TELEMETRY_LINES, Math.floor(limits.maxTextureSize / parts)));
    const layout = { ...layoutFor({ rows: lines * parts, columns: lowering.slots * 4, layers: 1 }), folded: false };
    const slot = arena.own("telemetry", layout);
    const draw = makeDraw(arena, "reduce_rows", {
      trips: texelsOfPart, // at most: what is taken at once depends on the device, and what it refuses should not
      defines: {
        BLOCK,
        PARTS: parts,
        TEXELS_OF_PART: texelsOfPart,
        ...atOnce("TEXEL", together),
        ...(accuracy && { WITH_ACCURACY: 1 }),
        ...(norm && { WITH_NORM: 1 }),
      },
      reads: [
        { name: "L", place: lowering.place("loss") },
        ...(accuracy ? [{ name: "C", place: lowering.place("correct") }] : []),
        ...(norm ? [{ name: "N", place: lowering.place(STEP_NORMS) }] : []),
      ],
      writes: [{ name: "S", slots: [slot, slot], layers: 1 }],
      domain: layout,
    });
    return { draw, lines, parts, norm };
  };
  const reductions = { train: reduction(train.lowering), evaluate: reduction(evaluate.lowering) };
  const phases = { train: train.draws, evaluate: evaluate.draws, predict: predict.draws };
  const ofBatch = accumulates ? updatesFrom : training.groups.length;
  const step = { batch: train.lowering.ordered(train.draws.slice(0, ofBatch)), end: train.draws.slice(ofBatch).flat() };
  requireTargets(Object.values(phases).flat(2), limits.maxDrawBuffers);

  return {
    textures: arena.textures,
    slots: arena.slots,
    training,
    bytes: arena.bytes,
    places,
    phases,
    step,
    updatesFrom: ofBatch,
    constants: constants.map(({ name, values = [] }) => ({ name, values })),
    gathers: streamed ? { epoch: [], stage: [] } : { epoch: fedNames.map((name) => gather(name, "epoch")), stage: fedNames.map((name) => gather(name, "stage")) },
    fed: fedNames,
    reductions,
    sizes: { batch, stage, trainSlots: train.lowering.slots, evaluateSlots: evaluate.lowering.slots, ring },
    streamed,
  };
}
