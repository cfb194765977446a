// Lowering: one phase of a plan on one device: where its tensors lie, and what its kernels ask for to make their draws.
import { belowResults } from "./computed_operands.js";
import { makeDraw } from "./draw.js";
import { rowsFor } from "./fragment_rows.js";
import { MAX_TRIPS, softmaxTrips } from "./kernels/common.js";
import { gatherDraws } from "./order.js";
import { ceilDiv, columnsOf, GATED_ROWS, gatesLayout, layoutOf, matrixOf, rowsPerFragment, textureBytes } from "./layout.js";
import { stacks } from "./regions.js";
import { fitsBelow, gradientsBelow, gradientsInParts, storedGradient } from "./stored_gradients.js";
import { inParts } from "./summed_parts.js";
import { MOST_ROWS, UNIFORM_LINES, UNIFORM_ROWS } from "./uniform_rows.js";

/** @import { Arena } from "./arena.js" */
/** @import { Blocks, Draw, KernelRead, Place } from "./draw.js" */
/** @import { RowsWanted } from "./fragment_rows.js" */
/** @import { Layout } from "./layout.js" */
/** @import { UniformGradient, UniformProduct } from "./uniform_rows.js" */
/** @import { Group } from "../../plan/fuse.js" */
/** @import { Phase } from "../../plan/plan.js" */
/** @import { Computed } from "../../plan/recompute.js" */

/** Of the row losses of all batches in flight, which are kept until one draw sums them. */
const ROW_LOSS_BYTES = 8 << 20;

/** The slot of what is not stored. */
const NOWHERE = -1;

const makesLoss = (/** @type {import("../../plan/fuse.js").Group} */ group) => group.ops.some((op) => op.type === "loss");

/** @param {Phase} phase @param {string} name */
export function tensorOf({ tensors }, name) {
  const tensor = tensors.get(name);
  if (!tensor) throw new Error(`no tensor ${name}`);
  return tensor;
}

/** The lowering of one phase; kernels/ asks it for what it needs. */
export class Lowering {
  /**
   * @param {object} context
   * @param {Arena} context.arena
   * @param {number} context.maxDrawBuffers
   * @param {RowsWanted} context.wanted
   * @param {number} context.batchRows aligned rows of a batch
   * @param {number} context.mostSlots batches in flight, at most
   * @param {number[]} context.shared textures that phases share
   * @param {Map<string, UniformProduct>} context.uniform products that take rows from uniform blocks, by their results
   * @param {Map<string, UniformGradient>} context.uniformGradients weight gradients that take columns from them, by their names
   * @param {Set<string>} context.gatedNames gradients that are stored as gates
   * @param {Map<Group, {name: string, how: Computed}>} context.operands that products compute, although they are stored
   * @param {Set<number>} context.quadWidths texels of rows of their results in all phases: tensors of such a width lie as these do where they can, so that
   *   they share textures
   * @param {number} [context.arranged] the slot in which these rows are arranged, where there are any
   * @param {Map<string, Place>} context.fixed where inputs, targets, parameters, their states and buffers lie
   * @param {Phase} context.phase
   */
  constructor({ arena, maxDrawBuffers, mostSlots, wanted, batchRows, shared, uniform, uniformGradients, gatedNames, operands, quadWidths, arranged, fixed, phase }) {
    this.arena = arena;
    this.maxDrawBuffers = maxDrawBuffers;
    this.wanted = wanted;
    this.batchRows = batchRows;
    this.mostSlots = mostSlots;
    /** Batches in flight: as many as the row losses may keep. */
    this.slots = 0;
    this.shared = shared;
    this.uniform = uniform;
    this.uniformGradients = uniformGradients;
    /** Blocks of columns, by the gradient that is made from them. @type {Map<string, Blocks>} */
    this.columns = new Map();
    this.gatedNames = gatedNames;
    this.operands = operands;
    this.quadWidths = batchRows > MOST_ROWS ? new Set() : quadWidths;
    this.arranged = arranged;
    this.places = new Map(fixed);
    this.phase = phase;
    /** Textures that only the next draw reads, so that one may serve many. @type {number[]} */
    this.scratches = [];
    /** Groups, by their places in the order, whose gradient is kept up to the end of a step, so that their updates follow one another there. @type {Set<number>} */
    this.waiting = new Set();
    this.assign();
    this.assignParts();
    this.assignStored();
  }

  /** Places what lives only within the phase. */
  assign() {
    const { phase, batchRows, maxDrawBuffers, wanted } = this;
    const lossGroup = phase.groups.find(makesLoss);
    const besideRowLosses = new Set(lossGroup && Object.values(lossGroup.outputs));
    const softmaxed = new Set(phase.groups.filter(({ kernel }) => kernel === "softmax_channels").flatMap(({ outputs }) => Object.values(outputs)));
    const gradients = gradientsBelow(this);
    /** @type {import("./arena.js").Tenant[]} */
    const tensors = [];
    const maxSize = this.arena.maxSize;
    const keep = (/** @type {string} */ name, /** @type {number} */ slot, /** @type {Layout} */ layout) =>
      this.places.set(name, { slots: [slot, slot], layout, fed: false });
    const push = (/** @type {string} */ name, /** @type {Layout} */ layout) => {
      const { first, last } = /** @type {{first: number, last: number}} */ (phase.lifetimes.get(name)), gradient = gradients.get(name);
      tensors.push({ name, first, last, layout, below: gradient && fitsBelow(layout, gradient.layout, maxSize) ? gradient : undefined });
    };
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
      if (this.isGated(name)) {
        this.placeGates(name, layoutOf({ rows: batchRows, ...columnsOf(shape), layers: GATED_ROWS }, maxSize));
        continue;
      }
      // A texel of row losses has 4 lanes, and is a render target of the same draw. Those of many batches are as large as this one's texture,
      // which therefore is no larger than it must be.
      const beside = besideRowLosses.has(name);
      const columns = columnsOf(shape);
      const texelsPerPixel = ceilDiv(columns.columns, columns.pixels * 4);
      const texelsPerRow = texelsPerPixel * columns.pixels;
      // A softmax goes through a pixel's channels for each row of a fragment: for very many of them it has 4, as the service counts.
      const loopsLong = (/** @type {number} */ rows) => softmaxed.has(name) && rows * softmaxTrips(texelsPerPixel) > MAX_TRIPS;
      if (!beside && this.quadWidths.has(texelsPerRow) && !loopsLong(UNIFORM_ROWS)) {
        push(name, layoutOf({ rows: batchRows, ...columns, layers: UNIFORM_ROWS, lines: UNIFORM_LINES }, maxSize));
        continue;
      }
      const wish = rowsFor(wanted.activation, batchRows, texelsPerRow);
      const layers = rowsPerFragment(beside || loopsLong(wish) ? Math.min(4, wish) : wish, maxDrawBuffers, { extra: beside ? 1 : 0 });
      const layout = inParts(this, name, layoutOf({ rows: batchRows, ...columns, layers }, maxSize));
      if (beside) keep(name, this.arena.own(name, layout), layout);
      else push(name, layout);
    }
    const tenants = belowResults(tensors, phase.groups, this.operands, maxSize);
    const slots = this.arena.share(tenants, this.shared);
    for (const { name, layout, below } of tenants) {
      const slot = /** @type {number} */ (slots.get(name));
      keep(name, slot, layout);
      if (!below) continue;
      keep(below.name, this.arena.below(slot, layout, below.layout), below.layout);
      const gradient = gradients.get(name);
      if (gradient?.name === below.name && phase.lifetimes.get(name)?.last === phase.groups.length - 1) this.waiting.add(gradient.group);
    }
    // Rows and columns of what is not stored are counted all the same.
    for (const name of phase.computed.keys()) keep(name, NOWHERE, layoutOf({ rows: batchRows, ...columnsOf(tensorOf(phase, name).shape), layers: 1 }, maxSize));
  }

  /** @param {string} name of a gradient @param {Layout} layout that it would have */
  placeGates(name, layout) {
    const gates = gatesLayout(layout, this.arena.maxSize);
    const place = (/** @type {number} */ slot) => ({ slots: /** @type {[number, number]} */ ([slot, slot]), layout: gates, fed: false });
    const gated = {
      gates: place(this.arena.own(`gates of ${name}`, gates, { lanes: 1, numbers: "uint" })),
      factors: place(this.arena.own(`factors of ${name}`, gates)),
    };
    this.places.set(name, { slots: gated.gates.slots, layout, fed: false, gated });
  }

  /** Whether it is stored as gates. @param {string} name */
  isGated(name) {
    return this.gatedNames.has(name);
  }

  /** @param {string} name of such a gradient */
  gated(name) {
    return /** @type {import("./draw.js").Gated} */ (this.place(name).gated);
  }

  /** Places the parts of gradients whose updates wait, in one texture where they fit together: draws into it may be one render pass. */
  assignParts() {
    const { maxSize } = this.arena;
    const all = gradientsInParts(this);
    // One that waits alone is worth it where the step ends with an update anyway: both may be one render pass.
    const last = this.phase.groups[this.phase.groups.length - 1];
    const updatesLast = last.kernel === "affine_grad_weights" && storedGradient(this, last) !== null;
    if (all.length + this.waiting.size + Number(updatesLast) < 2) return this.waiting.clear();
    const stacked = stacks(all, maxSize);
    const stacking = new Set(stacked.flat().map(({ name }) => name));
    const alone = all.filter(({ name }) => !stacking.has(name));
    for (const members of [...stacked, ...alone.map((one) => [one])]) {
      const slots = this.arena.stack(members);
      members.forEach(({ name, layout }, i) => this.places.set(name, { slots: [slots[i], slots[i]], layout, fed: false }));
    }
    for (const { group } of all) this.waiting.add(group);
  }

  /** Places the stored gradients that only the next draw reads: the largest first, so that one texture serves as many as it can. */
  assignStored() {
    const tensors = this.phase.groups.flatMap((group, i) => {
      const name = group.ops[0].outputs.dw;
      const layout = group.kernel === "affine_grad_weights" && !this.places.has(name) && storedGradient(this, group);
      return layout ? [{ name, layout, first: i, last: i }] : [];
    });
    const slots = this.arena.share(tensors, this.scratches);
    for (const { name, layout } of tensors) {
      const slot = /** @type {number} */ (slots.get(name));
      this.places.set(name, { slots: [slot, slot], layout, fed: false });
    }
  }

  /**
   * The order in which a batch's draws follow one another: updates that wait are the last, and draws of the same textures are side by side where they can be.
   * @param {Draw[][]} draws of each group, those of a waiting one a gradient and its update @returns {Draw[]}
   */
  ordered(draws) {
    const waiting = [...this.waiting].map((group) => draws[group]);
    const texture = (/** @type {number} */ slot) => this.arena.slots[slot].texture;
    const targetOf = (/** @type {Draw} */ { writes: [{ slots }] }) => texture(slots[0]);
    const others = draws.flatMap((each, group) => (this.waiting.has(group) ? each.slice(0, 1) : each));
    // Those first that write what the last of the others does, for one render pass.
    const rank = (/** @type {Draw} */ update) => (targetOf(update) === targetOf(others[others.length - 1]) ? -1 : targetOf(update));
    const updates = waiting.map(([, update]) => update).sort((a, b) => rank(a) - rank(b));
    return [...gatherDraws(others, new Set(waiting.map(([gradient]) => gradient)), texture), ...updates];
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

  /** A place for what one draw hands to the next, where it has none yet. @param {string} name @param {Layout} layout */
  scratch(name, layout) {
    if (this.places.has(name)) return { name, layout };
    const slot = /** @type {number} */ (this.arena.share([{ name, layout, first: 0, last: 0 }], this.scratches).get(name));
    this.places.set(name, { slots: [slot, slot], layout, fed: false });
    return { name, layout };
  }

  /** @param {string} alias @param {string} name @returns {KernelRead} */
  read(alias, name) {
    const how = this.phase.computed.get(name);
    return how ? this.readComputed(alias, name, how) : { name: alias, place: this.place(name) };
  }

  /** @param {string} alias @param {string} name @param {Computed} how @returns {KernelRead} */
  readComputed(alias, name, { product, activation }) {
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

  /** One number a row, those of a fragment in one texel, one layer for each batch in flight. @param {string} alias @param {string} name @param {Layout} domain */
  writeRows(alias, name, domain) {
    const lanes = domain.layers === 1 ? 1 : 4;
    this.slots ||= Math.max(1, Math.min(this.mostSlots, Math.floor(ROW_LOSS_BYTES / textureBytes({ width: domain.texels, height: 1, layers: 1, lanes }))));
    const layout = { ...domain, layers: this.slots };
    let place = this.places.get(name);
    if (!place) {
      // As large as the other targets of the draw; those of an evaluation have only each other.
      const gradient = [...this.places.values()].find((p) => p.layout === domain);
      const slot = this.arena.own(name, layout, { lanes, like: gradient && this.arena.slots[gradient.slots[0]] });
      place = { slots: [slot, slot], layout, fed: false };
      this.places.set(name, place);
    }
    return { name: alias, slots: place.slots, layers: /** @type {number|"slot"} */ ("slot") };
  }

  /**
   * @param {string} kernel name of its file
   * @param {{trips: number, defines: Record<string, string|number>, reads: KernelRead[],
   *   writes: {name: string, slots: [number, number], layers: number|"slot", clock?: "batch"}[], domain: Layout,
   *   fills?: Draw["fills"], uniform?: Blocks & {alias: string, layout: Layout}}} parts `trips`: of all loops of one fragment together, at
   *   most; `uniform`: the operand in the block, under its alias
   * @returns {Draw}
   */
  draw(kernel, parts) {
    return makeDraw(this.arena, kernel, parts);
  }
}
