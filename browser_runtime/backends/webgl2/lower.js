// Lowering: from the plan to textures, kernel sources and a fixed list of draws for one device. Pure: no GL, so it also estimates.
import { EngineError } from "../../errors.js";
import { Arena } from "./arena.js";
import { MAX_TRIPS } from "./kernels/common.js";
import { kernels } from "./kernels/index.js";
import { ceilDiv, columnsOf, extent, layoutOf, matrixOf, ROW_ALIGNMENT, rowsPerFragment, roundUp } from "./layout.js";

/** @import { Layout } from "./layout.js" */
/** @import { KernelSource } from "./shader_source.js" */
/** @import { Phase, Plan } from "../../plan/plan.js" */

/** Batches in flight whose row losses are kept until one draw sums them all. */
const MAX_SLOTS = 64;
/** Bytes of textures for the data set and an epoch of it; a larger one is streamed. WebGL does not tell how much memory there is. */
export const RESIDENT_BYTES = 2 ** 30;
/** Share of them for the ring of batches through which data is streamed. */
const RING_SHARE = 1 / 16;
/** Bytes of numbers that are held outside of textures, at most. */
export const MAX_HELD_BYTES = 2 ** 32;
const ROW_LOSS_BYTES = 8 << 20;
/** Lines of the telemetry texture: each holds the sums of one such draw. */
export const TELEMETRY_LINES = 64;
/** Texels of row losses that one fragment sums. */
const TEXELS_OF_PART = 4096;

/**
 * What is known of the device, or assumed for an estimate.
 * @typedef {{maxDrawBuffers: number, maxTextureSize: number, maxArrayLayers: number, residentBytes?: number, software?: boolean}} Limits
 */

/** A number of rows, or one for tensors of `few`, the `usual`, or `many` fragments. @typedef {number|{few: number, usual: number, many: number}} RowsChoice */

/**
 * Rows that a fragment writes, where the device's render targets allow it: of activations and their gradients, of weights with their
 * states, of weight gradients that are stored.
 * @typedef {{activation: RowsChoice, weight: RowsChoice, gradient: number}} RowsWanted
 */

/**
 * Measured on SwiftShader and on an H200, see docs/performance.md: a GPU whose many units wait for one another wants a small tensor's rows apart,
 * and has fragments enough of a large one to share more fetches among 8 rows.
 * @type {{software: RowsWanted, gpu: RowsWanted}}
 */
export const ROWS = {
  software: { activation: 4, weight: 4, gradient: 8 },
  gpu: { activation: { few: 1, usual: 4, many: 8 }, weight: { few: 2, usual: 4, many: 4 }, gradient: 8 },
};
/** Fragments of a draw below which they are few, and from which on they are many. */
const FEW_FRAGMENTS = 128;
const MANY_FRAGMENTS = 4096;

/** @param {RowsChoice} choice @param {number} rows @param {number} texelsPerRow @returns {number} rows a fragment */
function rowsFor(choice, rows, texelsPerRow) {
  if (typeof choice === "number") return choice;
  if ((rows / choice.many) * texelsPerRow >= MANY_FRAGMENTS) return choice.many;
  return (rows / choice.usual) * texelsPerRow < FEW_FRAGMENTS ? choice.few : choice.usual;
}

/** Rows of the data. @typedef {{total: number, train: number, validation: number, batch: number}} Rows */

/**
 * Where a tensor lives: its texture for even and odd steps (different for what ping-pongs), and how.
 * Steps and batches are the same unless gradients of several batches are added up: `clock` says which of them changes textures.
 * @typedef {{slots: [number, number], layout: Layout, fed: boolean, clock?: "batch"}} Place
 */

/**
 * One draw call. `reads` and `writes` give arena slots for even and odd steps; `layers` says which layers of the slot are render targets,
 * "slot" the layer of the batch in flight.
 * @typedef {object} Draw
 * @property {KernelSource} source
 * @property {{name: string, slots: [number, number], clock?: "batch"}[]} reads
 * @property {{slots: [number, number], layers: number|"slot", clock?: "batch"}[]} writes
 * @property {number} width @property {number} height of the viewport
 */

/** The sums of the batches in flight, in `parts` for each, which the host adds. @typedef {{draw: Draw, parts: number}} Reduction */

/**
 * @typedef {object} Lowered
 * @property {import("./arena.js").Slot[]} textures
 * @property {number} bytes of all textures
 * @property {Map<string, Place>} places
 * @property {{name: string, values: number[]}[]} constants what they hold
 * @property {{train: Draw[][], evaluate: Draw[][], predict: Draw[][]}} phases for each group of the plan, its draws
 * @property {number} updatesFrom the first group of training that waits for a step's last batch; beyond the last where none does
 * @property {{epoch: Draw[], stage: Draw[]}} gathers from the data set, into an epoch of batches and into the staging rows
 * @property {string[]} fed names of what comes with the data
 * @property {{train: Reduction, evaluate: Reduction}} reductions
 * @property {{batch: number, stage: number, trainSlots: number, evaluateSlots: number, ring: number}} sizes
 *   rows of a batch and of the staging tensors (aligned), batches in flight, batches that are on the device at once
 * @property {boolean} streamed whether the data set stays outside of textures
 */

const makesLoss = (/** @type {import("../../plan/fuse.js").Group} */ group) => group.ops.some((op) => op.type === "loss");

/** @param {Phase} phase @param {string} name */
function tensorOf({ tensors }, name) {
  const tensor = tensors.get(name);
  if (!tensor) throw new Error(`no tensor ${name}`);
  return tensor;
}

/**
 * A tensor that a kernel reads under a name of its own; where it is not stored, what it is computed from.
 * @typedef {{name: string, place: Place, type?: "int", computed?: {kind: "affine"|"affine_grad_input", relu: boolean, inner: KernelRead[]}}} KernelRead
 */

/** The slot of what is not stored. */
const NOWHERE = -1;

/** The reads that are fetches, those behind computed ones first. @param {KernelRead[]} reads @returns {KernelRead[]} */
const fetched = (reads) => reads.flatMap((read) => (read.computed ? fetched(read.computed.inner) : [read]));

/** The first of the reads that fetches from the same textures: they share its sampler. @param {KernelRead[]} reads @param {KernelRead} read */
const samplerOf = (reads, { place }) => /** @type {KernelRead} */ (reads.find((other) => other.place.slots.join() === place.slots.join())).name;

/** Computed reads, each behind those that it is computed from. @param {KernelRead[]} reads @returns {import("./shader_source.js").ComputedRead[]} */
const computedOf = (reads) =>
  reads.flatMap(({ name, place, computed }) => (computed ? [...computedOf(computed.inner), { name, layout: place.layout, kind: computed.kind, relu: computed.relu }] : []));

/** The lowering of one phase; kernels/ asks it for what it needs. */
export class Lowering {
  /**
   * @param {object} context
   * @param {Arena} context.arena
   * @param {number} context.maxDrawBuffers
   * @param {RowsWanted} context.wanted
   * @param {number} context.batchRows aligned rows of a batch
   * @param {number} context.maxArrayLayers
   * @param {number[]} context.shared textures that phases share
   * @param {Map<string, Place>} context.fixed where inputs, targets, parameters, their states and buffers lie
   * @param {Phase} context.phase
   */
  constructor({ arena, maxDrawBuffers, maxArrayLayers, wanted, batchRows, shared, fixed, phase }) {
    this.arena = arena;
    this.maxDrawBuffers = maxDrawBuffers;
    this.wanted = wanted;
    this.batchRows = batchRows;
    this.maxArrayLayers = maxArrayLayers;
    /** Batches in flight: as many as the row losses may keep. */
    this.slots = 0;
    this.shared = shared;
    this.places = new Map(fixed);
    this.phase = phase;
    /** Textures that only the next draw reads, so that one may serve many. @type {number[]} */
    this.scratches = [];
    this.assign();
  }

  /** Places what lives only within the phase. */
  assign() {
    const { phase, batchRows, maxDrawBuffers, wanted } = this;
    const lossGroup = phase.groups.find(makesLoss);
    const besideRowLosses = new Set(lossGroup && Object.values(lossGroup.outputs));
    const tensors = [];
    const maxSize = this.arena.maxSize;
    const keep = (/** @type {string} */ name, /** @type {number} */ slot, /** @type {Layout} */ layout) =>
      this.places.set(name, { slots: [slot, slot], layout, fed: false });
    for (const [name, { first, last }] of phase.lifetimes) {
      const { kind, shape, batched, bias } = tensorOf(phase, name);
      if (kind === "rows") continue;
      if (kind === "statistics") {
        // Written beside buffers, as large as they are.
        const layout = layoutOf({ rows: 1, columns: shape[0], layers: 1 }, maxSize);
        keep(name, this.arena.own(name, layout), layout);
        continue;
      }
      if (!batched) {
        tensors.push({ name, first, last, layout: layoutOf({ ...matrixOf(shape), layers: rowsPerFragment(4, maxDrawBuffers), bias }, maxSize) });
        continue;
      }
      // A texel of row losses has 4 lanes, and is a render target of the same draw. Those of many batches are as large as this one's texture,
      // which therefore is no larger than it must be.
      const beside = besideRowLosses.has(name);
      const columns = columnsOf(shape);
      const wish = rowsFor(wanted.activation, batchRows, ceilDiv(columns.columns, columns.pixels * 4) * columns.pixels);
      const layers = rowsPerFragment(beside ? Math.min(4, wish) : wish, maxDrawBuffers, { extra: beside ? 1 : 0 });
      const layout = layoutOf({ rows: batchRows, ...columns, layers }, maxSize);
      if (beside) keep(name, this.arena.own(name, layout), layout);
      else tensors.push({ name, first, last, layout });
    }
    const slots = this.arena.share(tensors, this.shared);
    for (const { name, layout } of tensors) {
      keep(name, /** @type {number} */ (slots.get(name)), layout);
    }
    // Rows and columns of what is not stored are counted all the same.
    for (const name of phase.computed.keys()) keep(name, NOWHERE, layoutOf({ rows: batchRows, ...columnsOf(tensorOf(phase, name).shape), layers: 1 }, maxSize));
  }

  /** @param {string} name @returns {Place} */
  place(name) {
    const place = this.places.get(name);
    if (!place) throw new Error(`${name} has no place`);
    return place;
  }

  /** @param {string} name */
  layout(name) {
    return this.place(name).layout;
  }

  /** The domain of a draw that ends in the loss: that of the gradient it writes, or as many rows as a texel of row losses has lanes.
   * @param {string} z */
  lossDomain(z) {
    const outputs = this.phase.groups.find(makesLoss)?.outputs;
    const gradient = outputs?.dx ?? outputs?.dz;
    if (gradient) return this.layout(gradient);
    return layoutOf({ rows: this.batchRows, ...columnsOf(tensorOf(this.phase, z).shape), layers: 4 }, this.arena.maxSize);
  }

  /** @param {string} name */
  tensor(name) {
    return tensorOf(this.phase, name);
  }

  /** @param {Parameters<typeof layoutOf>[0]} matrix */
  measure(matrix) {
    return layoutOf(matrix, this.arena.maxSize);
  }

  /** A place for what one draw hands to the next. @param {string} name @param {Layout} layout */
  scratch(name, layout) {
    const slot = /** @type {number} */ (this.arena.share([{ name, layout, first: 0, last: 0 }], this.scratches).get(name));
    this.places.set(name, { slots: [slot, slot], layout, fed: false });
    return { name, layout };
  }

  /** @param {string} alias @param {string} name @returns {KernelRead} */
  read(alias, name) {
    const how = this.phase.computed.get(name);
    if (!how) return { name: alias, place: this.place(name) };
    const { product, activation } = how;
    const { x, dy, w } = product.inputs;
    const inner = x
      ? [this.read(`${alias}_X`, x), this.read(`${alias}_W`, w)]
      : [this.read(`${alias}_DY`, dy), this.read(`${alias}_W`, w), ...(activation ? [this.read(`${alias}_Y`, activation.inputs.y)] : [])];
    return { name: alias, place: this.place(name), computed: { kind: x ? "affine" : "affine_grad_input", relu: activation !== null, inner } };
  }

  /** What an earlier draw of the same batch wrote where `write` says. @param {string} alias @param {string} name @returns {KernelRead} */
  readNew(alias, name) {
    const place = this.place(name);
    return { name: alias, place: { ...place, slots: [place.slots[1], place.slots[0]] } };
  }

  /** The new value of a parameter or state goes where the next step reads it. @param {string} alias @param {string} name */
  write(alias, name) {
    const { slots, layout, clock } = this.place(name);
    return { name: alias, slots: /** @type {[number, number]} */ ([slots[1], slots[0]]), layers: /** @type {number|"slot"} */ (layout.layers), clock };
  }

  /** One number a row, 4 rows a texel, one layer for each batch in flight. @param {string} alias @param {string} name @param {Layout} domain */
  writeRows(alias, name, domain) {
    this.slots ||= Math.max(1, Math.min(MAX_SLOTS, this.maxArrayLayers, Math.floor(ROW_LOSS_BYTES / (domain.texels * 16))));
    const layout = { ...domain, layers: this.slots };
    let place = this.places.get(name);
    if (!place) {
      // As large as the other targets of the draw; those of an evaluation have only each other.
      const gradient = [...this.places.values()].find((p) => p.layout === domain);
      const slot = this.arena.own(name, layout, { like: gradient && this.arena.slots[gradient.slots[0]] });
      place = { slots: [slot, slot], layout, fed: false };
      this.places.set(name, place);
    }
    return { name: alias, slots: place.slots, layers: /** @type {number|"slot"} */ ("slot") };
  }

  /**
   * @param {string} kernel name of its file
   * `trips`: of all loops of one fragment together, at most.
   * @param {{trips: number, defines: Record<string, string|number>, reads: KernelRead[],
   *   writes: {name: string, slots: [number, number], layers: number|"slot", clock?: "batch"}[], domain: Layout}} parts
   * @returns {Draw}
   */
  draw(kernel, { trips, defines, reads, writes, domain }) {
    return makeDraw(this.arena, kernel, { trips, defines, reads, writes, domain });
  }
}

/** @param {Arena} arena @param {string} kernel @param {any} parts @returns {Draw} */
function makeDraw(arena, kernel, { trips, defines, reads, writes, domain }) {
  const target = arena.slots[writes[0].slots[0]];
  const fetches = fetched(reads);
  if (trips > MAX_TRIPS) {
    throw new EngineError("too_large", `model: ${kernel} would loop ${trips} times in one fragment; at most ${MAX_TRIPS} are safe on every driver`, { field: "model" });
  }
  return {
    source: {
      shader: `${kernel}.frag.glsl`,
      defines,
      reads: fetches.map((read) => {
        const { name, place, type } = read;
        const { width, height } = arena.slots[place.slots[0]];
        return { name, sampler: samplerOf(fetches, read), layout: place.layout, width, height, fed: place.fed, type };
      }),
      computed: computedOf(reads),
      writes: writes.map((/** @type {any} */ { name, layers }) => ({ name, targets: layers === "slot" ? 1 : layers })),
      domain,
      width: target.width,
    },
    reads: fetches.filter((read) => samplerOf(fetches, read) === read.name).map(({ name, place }) => ({ name, slots: place.slots, clock: place.clock })),
    writes: writes.map((/** @type {any} */ { slots, layers, clock }) => ({ slots, layers, clock })),
    width: domain.folded ? Math.min(target.width, domain.texels) : domain.texelsPerRow,
    height: domain.folded ? ceilDiv(domain.texels, target.width) : domain.groups,
  };
}

/** Bytes of a texture for each layout; Infinity where one does not fit. @param {Layout[]} layouts @param {number} maxSize */
function bytesOf(layouts, maxSize) {
  return layouts.reduce((sum, layout) => {
    const size = extent(layout, maxSize);
    return sum + (size && size.height <= maxSize ? size.width * size.height * layout.layers * 16 : Infinity);
  }, 0);
}

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
  const stage = roundUp(Math.min(Math.max(rows.validation, 256), Math.max(rows.batch, 1024)), ROW_ALIGNMENT);
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
  const own = (/** @type {string} */ name, /** @type {Layout} */ layout, { fed = false, int = false } = {}) => {
    const slot = arena.own(name, layout, { int });
    places.set(name, { slots: [slot, slot], layout, fed });
  };
  const data = (/** @type {string} */ name) => layoutFor({ rows: rows.total, ...columns[name], layers: 1 });
  const epoch = (/** @type {string} */ name, /** @type {number} */ count) => layoutFor({ rows: count * batch, ...columns[name], layers });
  const textures = fedNames.flatMap((name) => [data(name), epoch(name, batches)]);
  const residentBytes = limits.residentBytes ?? RESIDENT_BYTES;
  const streamed = bytesOf(textures, limits.maxTextureSize) > residentBytes;
  const heldBytes = 4 * rows.total * Object.values(columns).reduce((sum, { columns: each }) => sum + each, 0);
  if (streamed && heldBytes > MAX_HELD_BYTES) {
    throw new EngineError("too_large", `data: ${rows.total} rows are ${heldBytes} bytes, which do not fit textures; at most ${MAX_HELD_BYTES} are held outside of them`, { field: "data" });
  }
  const ring = streamed ? Math.min(batches, ringOf(bytesOf(fedNames.map((name) => epoch(name, 1)), Infinity), residentBytes)) : batches;
  for (const name of fedNames) {
    if (!streamed) own(`${name}.data`, data(name));
    own(`${name}.epoch`, epoch(name, ring), { fed: true });
    own(`${name}.stage`, layoutFor({ rows: stage, ...columns[name], layers }));
  }
  if (!streamed) {
    own("order.epoch", layoutFor({ rows: batches * batch, columns: 1, layers: 1 }), { fed: true, int: true });
    own("order.stage", layoutFor({ rows: roundUp(Math.max(rows.validation, 1), stage), columns: 1, layers: 1 }), { fed: true, int: true });
  }

  const outputs = 1 + plan.states.length;
  if (outputs > limits.maxDrawBuffers) {
    throw new EngineError("no_float_targets", `this optimizer writes ${1 + plan.states.length} render targets; the device has ${limits.maxDrawBuffers}`);
  }
  for (const { tensor, bias, trainable } of plan.parameters) {
    const { shape } = tensorOf(plan.phases.train, tensor);
    const matrix = matrixOf(shape);
    const layers = rowsPerFragment(rowsFor(wanted.weight, matrix.rows, ceilDiv(matrix.columns, 4)), limits.maxDrawBuffers, { outputs });
    const layout = layoutFor({ ...matrix, layers, bias });
    if (!trainable) {
      own(tensor, layout);
      continue;
    }
    for (const name of [tensor, ...plan.states.map((state) => `${tensor}.${state}`)]) {
      places.set(name, { slots: [arena.own(name, layout), arena.own(name, layout)], layout, fed: false });
    }
  }
  // Gradients that are added up over the batches of a step: what one batch writes the next one reads.
  for (const { name, shape, bias, kind } of plan.phases.train.tensors.values()) {
    if (kind !== "accumulator") continue;
    const layout = layoutFor({ ...matrixOf(shape), layers: rowsPerFragment(4, limits.maxDrawBuffers), bias });
    places.set(name, { slots: [arena.own(name, layout), arena.own(name, layout)], layout, fed: false, clock: "batch" });
  }
  for (const { tensor, shape, moves } of plan.buffers) {
    const layout = layoutFor({ rows: 1, columns: shape[0], layers: 1 });
    const slot = arena.own(tensor, layout);
    places.set(tensor, { slots: [slot, moves ? arena.own(tensor, layout) : slot], layout, fed: false, clock: "batch" });
  }

  // What a loss or a layer was given with the spec; written once.
  const constants = [...plan.phases.train.tensors.values()].filter(({ kind }) => kind === "constant");
  for (const { name, shape } of constants) own(name, layoutFor({ rows: 1, ...columnsOf(shape), layers: 1 }));

  const accumulates = [...plan.phases.train.tensors.values()].some(({ kind }) => kind === "accumulator");
  const updatesFrom = plan.phases.train.groups.findIndex(({ kernel }) => kernel === "update" || kernel === "grad_factor");

  /** @type {number[]} */
  const shared = [];
  const lowerPhase = (/** @type {"train"|"evaluate"|"predict"} */ name, /** @type {number} */ alignedRows, /** @type {string} */ source) => {
    const fixed = new Map(places);
    for (const fed of fedNames) fixed.set(fed, /** @type {Place} */ (places.get(`${fed}.${source}`)));
    const phase = plan.phases[name];
    const { maxDrawBuffers, maxArrayLayers } = limits;
    const lowering = new Lowering({ arena, maxDrawBuffers, maxArrayLayers, wanted, batchRows: alignedRows, shared, fixed, phase });
    const draws = phase.groups.map((group) => kernels[group.kernel](lowering, group));
    return { draws, lowering };
  };
  const train = lowerPhase("train", batch, "epoch");
  const evaluate = lowerPhase("evaluate", stage, "stage");
  const predict = lowerPhase("predict", stage, "stage");
  places.set("output", predict.lowering.place(plan.output));
  for (const [name, place] of train.lowering.places) if (!places.has(name)) places.set(name, place);

  const gather = (/** @type {string} */ name, /** @type {string} */ to) => {
    const place = (/** @type {string} */ key) => /** @type {Place} */ (places.get(key));
    const out = place(`${name}.${to}`);
    return makeDraw(arena, "gather", {
      trips: 0,
      defines: {},
      reads: [{ name: "S", place: place(`${name}.data`) }, { name: "ORDER", place: place(`order.${to}`), type: "int" }],
      writes: [{ name: "E", slots: out.slots, layers: out.layout.layers }],
      domain: out.layout,
    });
  };
  const reduction = (/** @type {Lowering} */ lowering, /** @type {boolean} */ accuracy) => {
    const { groups, texelsPerRow } = lowering.place("loss").layout;
    const groupsOfPart = ceilDiv(groups, Math.min(groups, ceilDiv(groups * texelsPerRow, TEXELS_OF_PART)));
    const parts = ceilDiv(groups, groupsOfPart);
    const layout = { ...layoutFor({ rows: TELEMETRY_LINES * parts, columns: lowering.slots * 4, layers: 1 }), folded: false };
    const slot = arena.own("telemetry", layout);
    const draw = makeDraw(arena, "reduce_rows", {
      trips: groupsOfPart * texelsPerRow + groupsOfPart,
      defines: {
        BLOCK: Math.max(1, Math.floor(64 / texelsPerRow)),
        PARTS: parts,
        GROUPS_OF_PART: groupsOfPart,
        ...(accuracy && { WITH_ACCURACY: 1 }),
      },
      reads: [{ name: "L", place: lowering.place("loss") }, ...(accuracy ? [{ name: "C", place: lowering.place("correct") }] : [])],
      writes: [{ name: "S", slots: [slot, slot], layers: 1 }],
      domain: layout,
    });
    return { draw, parts };
  };
  const reductions = { train: reduction(train.lowering, false), evaluate: reduction(evaluate.lowering, evaluate.lowering.places.has("correct")) };
  const phases = { train: train.draws, evaluate: evaluate.draws, predict: predict.draws };
  requireTargets(Object.values(phases).flat(2), limits.maxDrawBuffers);

  return {
    textures: arena.slots,
    bytes: arena.bytes,
    places,
    phases,
    updatesFrom: accumulates ? updatesFrom : plan.phases.train.groups.length,
    constants: constants.map(({ name, values = [] }) => ({ name, values })),
    gathers: streamed ? { epoch: [], stage: [] } : { epoch: fedNames.map((name) => gather(name, "epoch")), stage: fedNames.map((name) => gather(name, "stage")) },
    fed: fedNames,
    reductions,
    sizes: { batch, stage, trainSlots: train.lowering.slots, evaluateSlots: evaluate.lowering.slots, ring },
    streamed,
  };
}
