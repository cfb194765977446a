// Executable: a lowered plan on a device. Owns the textures, framebuffers and uniform buffers, and submits the fixed lists of draws.
import { EngineError } from "../../errors.js";
import { pack, unpack } from "./layout.js";
import { TELEMETRY_LINES } from "./lower.js";
import { readLater } from "./readback.js";
import { kernelText } from "./shader_source.js";
import { Steps } from "./steps.js";

/** @import { Device } from "./device.js" */
/** @import { Draw, Lowered, Place } from "./lower.js" */

/**
 * A draw with its GL objects, for each state of the two clocks (Executable.state): `framebuffers` hold one each, or one for each batch in flight.
 * `textures[state][i]` is bound to `units[i]`.
 * @typedef {{program: WebGLProgram, draw: Draw, units: number[], textures: WebGLTexture[][], framebuffers: WebGLFramebuffer[][],
 *   perSlot: boolean, width: number, height: number}} Dispatch
 */

/** Sums of one batch: its loss (mean over the batch in training, sum over the rows in evaluation), whether that is finite, right predictions.
 * @typedef {{loss: number, finite: boolean, correct: number}} Sums */

/** Texture units that every device has. */
const UNITS = 16;

export class Executable {
  /**
   * Compiles the programs, in parallel where the driver can, and allocates the textures.
   * @param {Device} device @param {Lowered} lowered
   */
  static async create(device, lowered) {
    const draws = [
      ...Object.values(lowered.phases).flat(2), ...Object.values(lowered.gathers).flat(), ...Object.values(lowered.reductions).map(({ draw }) => draw),
    ];
    const texts = draws.map((draw) => {
      const { text, origins } = kernelText(draw.source, device.shaders, device.dialect);
      device.programs.start(text, origins);
      return text;
    });
    const programs = await device.programs.finish(texts);
    const executable = new Executable(device, lowered, new Map(draws.map((draw, i) => [draw, programs[i]])), fingerprint(texts));
    try {
      device.check();
    } catch (error) {
      executable.dispose();
      throw error;
    }
    return executable;
  }

  /** @param {Device} device @param {Lowered} lowered @param {Map<Draw, WebGLProgram>} programs @param {string} fingerprint of their texts */
  constructor(device, lowered, programs, fingerprint) {
    this.fingerprint = fingerprint;
    this.device = device;
    this.gl = device.gl;
    this.lowered = lowered;
    this.sizes = lowered.sizes;
    const before = device.live.textureBytes;
    /** @type {WebGLTexture[]} */
    this.textures = lowered.textures.map((size) => device.createTexture(size));
    this.textureBytes = device.live.textureBytes - before;
    /** GL calls of all steps submitted so far; counted where they are made. */
    this.glCalls = 0;
    /** @type {WebGLFramebuffer[]} */
    this.framebuffers = [];
    this.steps = new Steps(this.gl, this.sizes.trainSlots);
    this.evaluateSteps = new Steps(this.gl, this.sizes.evaluateSlots);
    /** Batches in flight whose framebuffers are made. */
    this.prepared = 0;
    /** Which of the ping-pong textures holds the parameters: every step changes it. */
    this.parity = 0;
    /** Which of them holds what every batch changes; the same where a step has one batch. */
    this.half = 0;
    /** By texture unit. @type {(WebGLTexture|null)[]} */
    this.bound = [];
    /** The unit that a texture, or the pair that takes turns, keeps from draw to draw, so that it is bound once. @type {Map<number, number>} */
    this.units = new Map();

    const get = (/** @type {Draw} */ draw) => this.dispatch(draw, /** @type {WebGLProgram} */ (programs.get(draw)));
    const { phases, gathers, reductions } = lowered;
    /** Dispatches of each group of the plan. */
    this.groups = phases.train.map((draws) => draws.map(get));
    this.train = this.groups.flat();
    /** What every batch runs, and what the last one of a step runs besides. */
    this.batch = this.groups.slice(0, lowered.updatesFrom).flat();
    this.updates = this.groups.slice(lowered.updatesFrom).flat();
    this.evaluate = phases.evaluate.flat().map(get);
    this.predict = phases.predict.flat().map(get);
    this.gathers = { epoch: gathers.epoch.map(get), stage: gathers.stage.map(get) };
    /** For reads of whole tensors: a framebuffer for each layer. @type {Map<string, WebGLFramebuffer[]>} */
    this.readers = new Map();
    for (const { name, values } of lowered.constants) this.writeParameter(name, values, null);
    this.reductions = { train: get(reductions.train.draw), evaluate: get(reductions.evaluate.draw) };
  }

  /** @param {Draw} draw @param {WebGLProgram} program @returns {Dispatch} */
  dispatch(draw, program) {
    const { gl } = this;
    const units = this.device.programs.units(program, () => this.chooseUnits(draw));
    gl.useProgram(program);
    draw.reads.forEach(({ name }, i) => gl.uniform1i(gl.getUniformLocation(program, `u${name}`), units[i]));
    const states = [0, 1, 2, 3];
    // States in which the same textures are written share their framebuffers.
    const written = states.map((state) => draw.writes.map((write) => slotOf(write, state)).join());
    /** @type {WebGLFramebuffer[][]} */
    const made = states.map(() => []);
    return {
      program, draw, units,
      textures: states.map((state) => draw.reads.map((read) => this.textures[slotOf(read, state)])),
      framebuffers: states.map((state) => made[written.indexOf(written[state])]),
      perSlot: draw.writes.some(({ layers }) => layers === "slot"), width: draw.width, height: draw.height,
    };
  }

  /** Each texture's own unit, or the next that the draw leaves free. @param {Draw} draw @returns {number[]} by its reads */
  chooseUnits(draw) {
    /** @type {number[]} */
    const taken = [];
    for (const { slots } of draw.reads) {
      const key = Math.min(...slots);
      if (!this.units.has(key)) this.units.set(key, this.units.size % UNITS);
      let unit = /** @type {number} */ (this.units.get(key));
      while (taken.includes(unit)) unit = (unit + 1) % UNITS;
      taken.push(unit);
    }
    return taken;
  }

  /** The framebuffer of a dispatch, made when it is first needed. @param {Dispatch} dispatch @param {number} state @param {number} slot */
  framebuffer(dispatch, state, slot) {
    const index = dispatch.perSlot ? slot : 0;
    const made = dispatch.framebuffers[state];
    if (made[index] === undefined) {
      const targets = dispatch.draw.writes.flatMap((write) => {
        const { layers } = write;
        const texture = this.textures[slotOf(write, state)];
        return layers === "slot" ? [{ texture, layer: slot }] : Array.from({ length: layers }, (_, layer) => ({ texture, layer }));
      });
      made[index] = this.device.createFramebuffer(targets);
      this.framebuffers.push(made[index]);
    }
    return made[index];
  }

  /** Of both clocks: what tells which textures are read and written. */
  get state() {
    return this.parity | (this.half << 1);
  }

  /** Makes the framebuffers of flights of up to `count` training steps, so that submitting them makes nothing. @param {number} count */
  prepare(count) {
    this.framebuffer(this.reductions.train, 0, 0);
    for (; this.prepared < count; this.prepared++) {
      const states = this.updates.length > 0 ? [0, 1, 2, 3] : [0, 3];
      for (const dispatch of this.train) for (const state of states) this.framebuffer(dispatch, state, this.prepared);
    }
  }

  /**
   * The hot path: allocates nothing, asks nothing.
   * @param {Dispatch[]} dispatches @param {number} slot batch in flight
   */
  run(dispatches, slot) {
    const { gl, bound, state } = this;
    for (let d = 0; d < dispatches.length; d++) {
      const dispatch = dispatches[d];
      gl.useProgram(dispatch.program);
      gl.bindFramebuffer(gl.FRAMEBUFFER, dispatch.framebuffers[state][dispatch.perSlot ? slot : 0] ?? this.framebuffer(dispatch, state, slot));
      gl.viewport(0, 0, dispatch.width, dispatch.height);
      const textures = dispatch.textures[state];
      for (let i = 0; i < textures.length; i++) {
        const unit = dispatch.units[i];
        if (bound[unit] === textures[i]) continue;
        gl.activeTexture(gl.TEXTURE0 + unit);
        gl.bindTexture(gl.TEXTURE_2D_ARRAY, textures[i]);
        bound[unit] = textures[i];
        this.glCalls += 2;
      }
      gl.drawArrays(gl.TRIANGLES, 0, 3);
      this.glCalls += 4;
    }
  }

  /** Sums the row losses of the batches in flight into a line of the telemetry texture. @param {"train"|"evaluate"} phase @param {number} line */
  reduce(phase, line) {
    const { gl } = this;
    const dispatch = this.reductions[phase];
    gl.useProgram(dispatch.program);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.framebuffer(dispatch, 0, 0));
    const { parts } = this.lowered.reductions[phase];
    gl.viewport(0, line * parts, this.slots(phase), parts);
    this.bindTextures(dispatch);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    this.glCalls += 4 + 2 * dispatch.textures[0].length;
  }

  /** Batches in flight. @param {"train"|"evaluate"} phase */
  slots(phase) {
    return phase === "train" ? this.sizes.trainSlots : this.sizes.evaluateSlots;
  }

  /** @param {Dispatch} dispatch */
  bindTextures({ textures: [textures], units }) {
    textures.forEach((texture, i) => {
      const unit = units[i];
      this.gl.activeTexture(this.gl.TEXTURE0 + unit);
      this.gl.bindTexture(this.gl.TEXTURE_2D_ARRAY, texture);
      this.bound[unit] = texture;
    });
  }

  /** Another executable, or an upload, may have used the context: forget what is bound. */
  enter() {
    this.bound.length = 0;
    this.gl.bindVertexArray(this.device.vao);
  }

  /**
   * Submits `count` batches whose scalars stand in `this.steps`, each a step or a part of one, then the sums of their losses.
   * @param {number} count at most sizes.trainSlots @param {number} line of the telemetry
   */
  submitTraining(count, line) {
    this.enter();
    this.steps.upload(count);
    for (let i = 0; i < count; i++) {
      this.steps.bind(i);
      this.run(this.batch, i);
      if (this.steps.ends[i]) {
        this.run(this.updates, i);
        this.parity ^= 1;
      }
      this.half ^= 1;
    }
    // One more for each step's scalars, two for their upload, one to enter.
    this.glCalls += count + 3;
    this.reduce("train", line);
  }

  /**
   * Runs the first step whose scalars stand in `this.steps` group by group, without taking it: the new parameters are left in the textures of
   * the other parity, where the next step overwrites them.
   * @param {(group: number) => void} after called after each group, to read what it made
   */
  inspect(after) {
    this.steps.upload(1);
    this.groups.forEach((dispatches, group) => {
      this.enter();
      this.steps.bind(0);
      this.run(dispatches, 0);
      after(group);
    });
  }

  /**
   * Submits an evaluation of rows of the data set, in the order given to `setOrder("stage", ...)`, or written by the caller.
   * @param {number} first first row of that order, a multiple of sizes.stage
   * @param {number} rows at most sizes.stage * sizes.evaluateSlots
   * @param {number} line of the telemetry
   * @param {{write?: (first: number, rows: number) => void, after?: (rows: number) => void}} [hooks] `write`: writes these rows into the staging
   *   tensors; `after`: called after the draws of each batch, whose staging rows are still there
   * @returns {number} batches
   */
  submitEvaluation(first, rows, line, { write, after } = {}) {
    this.enter();
    const { stage } = this.sizes;
    const batches = Math.ceil(rows / stage);
    for (let i = 0; i < batches; i++) this.evaluateSteps.set(i, Math.min(stage, rows - i * stage), first + i * stage, 1);
    this.evaluateSteps.upload(batches);
    for (let i = 0; i < batches; i++) {
      write?.(first + i * stage, Math.min(stage, rows - i * stage));
      this.evaluateSteps.bind(i);
      this.run(this.gathers.stage, i);
      this.run(this.evaluate, i);
      after?.(Math.min(stage, rows - i * stage));
    }
    this.reduce("evaluate", line);
    return batches;
  }

  /**
   * The network's outputs for the staging rows that were just evaluated, and their targets, read without stalling.
   * @param {number} rows
   * @returns {Promise<{outputs: Float32Array, targets: Float32Array}>} [rows, columns] each
   */
  async readEvaluated(rows) {
    this.run(this.predict, 0);
    const reads = ["output", "target.stage"].map((name) => this.readTensorLater(name, rows));
    const [outputs, targets] = await Promise.all(reads);
    return { outputs, targets };
  }

  /** Evaluates the rows that were uploaded to the staging tensors. @param {number} rows */
  submitStagedEvaluation(rows) {
    this.enter();
    this.evaluateSteps.set(0, rows, 0, 1);
    this.evaluateSteps.upload(1);
    this.evaluateSteps.bind(0);
    this.run(this.evaluate, 0);
    this.reduce("evaluate", 0);
  }

  /** Predicts the rows that were uploaded to `x.stage`. @param {number} rows @returns {Float32Array} [rows, outputs] */
  predictStaged(rows) {
    this.enter();
    this.evaluateSteps.set(0, rows, 0, 1);
    this.evaluateSteps.upload(1);
    this.evaluateSteps.bind(0);
    this.run(this.predict, 0);
    const { data } = this.readTensor("output");
    return data.subarray(0, rows * this.place("output").layout.columns);
  }

  /**
   * Reads lines of the telemetry, without stalling.
   * @param {"train"|"evaluate"} phase @param {number} line @param {number} lines
   * @returns {Promise<(line: number, slot: number) => Sums>}
   */
  async readTelemetry(phase, line, lines) {
    this.enter();
    const width = this.slots(phase);
    const { parts } = this.lowered.reductions[phase];
    this.gl.bindFramebuffer(this.gl.FRAMEBUFFER, this.framebuffer(this.reductions[phase], 0, 0));
    const values = await readLater(this.device, { x: 0, y: line * parts, width, height: lines * parts });
    return (l, slot) => {
      const sums = { loss: 0, finite: true, correct: 0 };
      for (let part = 0; part < parts; part++) {
        const at = (((l - line) * parts + part) * width + slot) * 4;
        // Every sum that was really made says so.
        if (values[at + 3] !== 1) throw new EngineError("context_lost", "the GPU process died: what was read from it is not real");
        sums.loss += values[at];
        sums.finite &&= values[at + 1] === 0;
        sums.correct += values[at + 2];
      }
      return sums;
    };
  }

  /** @param {string} name @returns {Place} */
  place(name) {
    const place = this.lowered.places.get(name);
    if (!place) throw new Error(`no tensor ${name}`);
    return place;
  }

  /**
   * Sets the order of the epoch's batches or of the evaluated rows, and gathers the epoch.
   * @param {"epoch"|"stage"} to @param {Int32Array} order row numbers, -1 for padding
   */
  setOrder(to, order) {
    this.enter();
    const { slots } = this.place(`order.${to}`);
    this.upload(slots[0], 0, order, true);
    if (to !== "epoch") return;
    this.evaluateSteps.set(0, 0, 0, 1);
    this.evaluateSteps.upload(1);
    this.evaluateSteps.bind(0);
    this.run(this.gathers.epoch, 0);
  }

  /**
   * Writes rows of the data set.
   * @param {string} name @param {number} firstRow @param {ArrayLike<number>} values [rows, columns]
   */
  writeData(name, firstRow, values) {
    const { slots, layout } = this.place(`${name}.data`);
    const { columns, texelsPerRow } = layout;
    const rows = values.length / columns;
    const texels = pack({ ...layout, rows, folded: false }, values, null, { width: texelsPerRow, height: rows });
    if (layout.folded) this.upload(slots[0], firstRow * texelsPerRow, texels, false);
    else this.uploadBox(slots[0], { x: 0, y: firstRow, width: texelsPerRow, height: rows }, texels, false);
  }

  /** Numbers of a row. @param {string} name */
  columns(name) {
    return this.place(`${name}.stage`).layout.columns;
  }

  /**
   * Writes a batch among those that are trained on.
   * @param {string} name @param {number} first row where a batch starts @param {ArrayLike<number>} values [rows, columns]; zeros follow up to the batch's end
   */
  writeEpoch(name, first, values) {
    const { slots, layout } = this.place(`${name}.epoch`);
    const { layers, texelsPerRow, folded } = layout;
    const rows = values.length / layout.columns;
    const groups = this.sizes.batch / layers;
    const count = groups * texelsPerRow;
    const texels = pack({ ...layout, rows, blockRows: rows, folded: true }, values, null, { width: count, height: 1 });
    for (let layer = 0; layer < layers; layer++) {
      const part = texels.subarray(layer * count * 4, (layer + 1) * count * 4);
      if (folded) this.upload(slots[0], (first / layers) * texelsPerRow, part, false, layer);
      else this.uploadBox(slots[0], { x: 0, y: first / layers, width: texelsPerRow, height: groups }, part, false, layer);
    }
  }

  /** Writes rows into the staging tensor. @param {string} name @param {ArrayLike<number>} values [rows, columns], rows <= sizes.stage */
  writeStage(name, values) {
    const { slots, layout } = this.place(`${name}.stage`);
    const rows = values.length / layout.columns;
    this.uploadAll(slots[0], pack({ ...layout, rows }, values, null, this.lowered.textures[slots[0]]));
  }

  /** Uploads consecutive texels of a layer of a folded texture. @param {number} slot @param {number} first @param {Float32Array|Int32Array} texels @param {boolean} int @param {number} [layer] */
  upload(slot, first, texels, int, layer = 0) {
    const { width } = this.lowered.textures[slot];
    const lanes = int ? 1 : 4;
    const count = texels.length / lanes;
    for (let done = 0; done < count; ) {
      const x = (first + done) % width;
      const y = Math.floor((first + done) / width);
      // The rest of a line that was begun, then whole lines, then the beginning of one.
      const lines = x === 0 ? Math.floor((count - done) / width) : 0;
      const size = lines > 0 ? lines * width : Math.min(width - x, count - done);
      const box = { x, y, width: lines > 0 ? width : size, height: Math.max(1, lines) };
      this.uploadBox(slot, box, texels.subarray(done * lanes, (done + size) * lanes), int, layer);
      done += size;
    }
  }

  /**
   * @param {number} slot @param {{x: number, y: number, width: number, height: number}} box
   * @param {Float32Array|Int32Array} texels @param {boolean} int @param {number} [layer]
   */
  uploadBox(slot, { x, y, width, height }, texels, int, layer = 0) {
    const { gl, device } = this;
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.textures[slot]);
    this.bound[0] = null;
    const { format, type } = int ? { format: gl.RED_INTEGER, type: gl.INT } : device.transfer();
    const view = int || device.format === "rgba32f" ? texels : new Uint32Array(texels.buffer, texels.byteOffset, texels.length);
    gl.texSubImage3D(gl.TEXTURE_2D_ARRAY, 0, x, y, layer, width, height, 1, format, type, view);
  }

  /** @param {number} slot @param {Float32Array} texels [layers, height, width, 4] */
  uploadAll(slot, texels) {
    const { gl, device } = this;
    const { width, height, layers } = this.lowered.textures[slot];
    const { format, type, view } = device.transfer(texels.buffer);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.textures[slot]);
    this.bound[0] = null;
    gl.texSubImage3D(gl.TEXTURE_2D_ARRAY, 0, 0, 0, 0, width, height, layers, format, type, /** @type {any} */ (view));
  }

  /** @param {string} name a parameter, state or buffer @param {ArrayLike<number>} data @param {ArrayLike<number>|null} bias */
  writeParameter(name, data, bias) {
    const place = this.place(name);
    const { slots, layout } = place;
    this.uploadAll(slotOf(place, this.state), pack(layout, data, bias, this.lowered.textures[slots[0]]));
  }

  /**
   * Reads a tensor as it is now, synchronously.
   * @param {string} name @param {number} [parity] of the step whose value is wanted
   * @returns {{data: Float32Array, bias: Float32Array|null, texels: Float32Array}} `texels`: all that the texture holds, padding too
   */
  readTensor(name, parity = this.parity) {
    const { gl, device } = this;
    const place = this.place(name);
    const { layout } = place;
    // Both clocks turn where the other value is asked for.
    const slot = slotOf(place, this.state ^ (parity === this.parity ? 0 : 3));
    const { width, height, layers } = this.lowered.textures[slot];
    const texels = new Float32Array(layers * width * height * 4);
    for (let layer = 0; layer < layers; layer++) {
      const framebuffer = device.createFramebuffer([{ texture: this.textures[slot], layer }]);
      const { format, type, view } = device.transfer(texels.buffer);
      const size = width * height * 4;
      gl.readPixels(0, 0, width, height, format, type, /** @type {any} */ (view).subarray(layer * size, (layer + 1) * size));
      device.deleteFramebuffer(framebuffer);
    }
    device.checkAlive();
    // The texture of a probe took the place of whatever was bound.
    this.bound.length = 0;
    return { ...unpack(layout, texels, { width, height }), texels };
  }

  /**
   * Reads rows of the epoch's batches, synchronously.
   * @param {string} name @param {number} first a row that starts a batch @param {number} rows @returns {Float32Array} [rows, columns]
   */
  readEpoch(name, first, rows) {
    const { gl, device } = this;
    const { slots, layout } = this.place(`${name}.epoch`);
    const { width } = this.lowered.textures[slots[0]];
    const [from, count] = [(first / layout.layers) * layout.texelsPerRow, Math.ceil(rows / layout.layers) * layout.texelsPerRow];
    const [top, bottom] = [Math.floor(from / width), Math.ceil((from + count) / width)];
    // A plain texture is as wide as a row, so that in both the texels of some groups follow each other.
    const lines = new Float32Array((bottom - top) * width * 4);
    const texels = new Float32Array(layout.layers * count * 4);
    const { format, type, view } = device.transfer(lines.buffer);
    for (let layer = 0; layer < layout.layers; layer++) {
      const framebuffer = device.createFramebuffer([{ texture: this.textures[slots[0]], layer }]);
      gl.readPixels(0, top, width, bottom - top, format, type, /** @type {any} */ (view));
      device.deleteFramebuffer(framebuffer);
      const start = (from - top * width) * 4;
      texels.set(lines.subarray(start, start + count * 4), layer * count * 4);
    }
    device.checkAlive();
    this.bound.length = 0;
    return unpack({ ...layout, rows, blockRows: rows, folded: true }, texels, { width: count, height: 1 }).data;
  }

  /**
   * Reads the first rows of a tensor as the draws submitted so far leave it, without stalling.
   * @param {string} name @param {number} rows
   * @returns {Promise<Float32Array>} [rows, columns]
   */
  async readTensorLater(name, rows) {
    const { gl, device } = this;
    const { slots, layout } = this.place(name);
    const { layers, columns, folded, texels, texelsPerRow, groups } = layout;
    const texture = this.lowered.textures[slots[0]];
    // A texture that tensors share may be larger than this one.
    const width = folded ? Math.min(texture.width, texels) : texelsPerRow;
    const height = folded ? Math.ceil(texels / texture.width) : groups;
    if (!this.readers.has(name)) {
      const made = Array.from({ length: layers }, (_, layer) => device.createFramebuffer([{ texture: this.textures[slots[0]], layer }]));
      this.readers.set(name, made);
      this.framebuffers.push(...made);
    }
    const reads = /** @type {WebGLFramebuffer[]} */ (this.readers.get(name)).map((framebuffer) => {
      gl.bindFramebuffer(gl.FRAMEBUFFER, framebuffer);
      return readLater(device, { x: 0, y: 0, width, height });
    });
    const size = width * height * 4;
    const all = new Float32Array(layers * size);
    (await Promise.all(reads)).forEach((read, layer) => all.set(read, layer * size));
    return unpack(layout, all, { width, height }).data.subarray(0, rows * columns);
  }

  /**
   * Reads the row losses of the first batch in flight.
   * @param {string} name of a `rows` tensor @param {number} rows @returns {Float64Array} [rows]
   */
  readRows(name, rows) {
    const { gl, device } = this;
    const { slots, layout } = this.place(name);
    const { width, height } = this.lowered.textures[slots[0]];
    const texels = new Float32Array(width * height * 4);
    const framebuffer = device.createFramebuffer([{ texture: this.textures[slots[0]], layer: 0 }]);
    const { format, type, view } = device.transfer(texels.buffer);
    gl.readPixels(0, 0, width, height, format, type, /** @type {any} */ (view));
    device.deleteFramebuffer(framebuffer);
    device.checkAlive();
    // The texture of a probe took the place of whatever was bound.
    this.bound.length = 0;
    // A texel holds the parts of `perTexel` rows that one column texel makes: the rows of a fragment of the draw that writes it.
    const writer = this.train.find(({ draw }) => draw.writes.some((write) => write.slots[0] === slots[0]));
    const perTexel = writer ? writer.draw.source.domain.layers : 1;
    const out = new Float64Array(rows);
    for (let row = 0; row < rows; row++) {
      const first = Math.floor(row / perTexel) * (layout.folded ? layout.texelsPerRow : width);
      for (let n = 0; n < layout.texelsPerRow; n++) out[row] += texels[(first + n) * 4 + (row % perTexel)];
    }
    return out;
  }

  /** Throws where what was read last may not be real. */
  checkAlive() {
    this.device.checkAlive();
    // The texture of a probe took the place of whatever was bound.
    this.bound.length = 0;
  }

  /** Lines of telemetry that may be written before they are read. */
  get telemetryLines() {
    return TELEMETRY_LINES;
  }

  dispose() {
    for (const framebuffer of this.framebuffers) this.device.deleteFramebuffer(framebuffer);
    this.textures.forEach((texture, slot) => this.device.deleteTexture(texture, this.lowered.textures[slot]));
    for (const steps of [this.steps, this.evaluateSteps]) steps.dispose();
    this.textures = [];
    this.framebuffers = [];
  }
}

/** The slot of a place in a state of the two clocks: bit 0 is that of steps, bit 1 of batches.
 * @param {{slots: [number, number], clock?: "batch"}} place @param {number} state */
const slotOf = ({ slots, clock }, state) => slots[/** @type {0|1} */ (clock === "batch" ? state >> 1 : state & 1)];

/** 64 bits by which programs can be told apart: FNV-1a with two offsets. @param {string[]} texts */
function fingerprint(texts) {
  return [0x811c9dc5, 0x01000193]
    .map((offset) => {
      let hash = offset;
      for (const text of texts) for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
      return (hash >>> 0).toString(16).padStart(8, "0");
    })
    .join("");
}
