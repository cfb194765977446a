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
 * A draw with its GL objects. `framebuffers[parity]` holds one framebuffer, or one for each batch in flight.
 * @typedef {{program: WebGLProgram, draw: Draw, textures: [WebGLTexture[], WebGLTexture[]], framebuffers: [WebGLFramebuffer[], WebGLFramebuffer[]],
 *   perSlot: boolean, width: number, height: number}} Dispatch
 */

/** Sums of one batch: its loss (mean over the batch in training, sum over the rows in evaluation), whether that is finite, right predictions.
 * @typedef {{loss: number, finite: boolean, correct: number}} Sums */

export class Executable {
  /**
   * Compiles the programs, in parallel where the driver can, and allocates the textures.
   * @param {Device} device @param {Lowered} lowered
   */
  static async create(device, lowered) {
    const executable = new Executable(device, lowered);
    try {
      await executable.build();
    } catch (error) {
      executable.dispose();
      throw error;
    }
    return executable;
  }

  /** @param {Device} device @param {Lowered} lowered */
  constructor(device, lowered) {
    this.device = device;
    this.gl = device.gl;
    this.lowered = lowered;
    this.sizes = lowered.sizes;
    /** @type {WebGLTexture[]} */
    this.textures = [];
    /** @type {WebGLFramebuffer[]} */
    this.framebuffers = [];
    this.steps = new Steps(this.gl, this.sizes.trainSlots);
    this.evaluateSteps = new Steps(this.gl, this.sizes.evaluateSlots);
    /** Which of the ping-pong textures holds the parameters. */
    this.parity = 0;
    /** @type {(WebGLTexture|null)[]} */
    this.bound = [];
  }

  async build() {
    const { device, lowered } = this;
    const all = [
      ...Object.values(lowered.phases).flat(2), ...Object.values(lowered.gathers).flat(), ...Object.values(lowered.reductions),
    ];
    /** @type {Map<Draw, string>} */
    const texts = new Map();
    for (const draw of all) {
      const { text, origins } = kernelText(draw.source, device.shaders, device.dialect);
      texts.set(draw, text);
      device.programs.start(text, origins);
    }
    for (const size of lowered.textures) this.textures.push(device.createTexture(size));
    device.check();
    const programs = await device.programs.finish([...texts.values()]);
    const dispatches = new Map(all.map((draw, i) => [draw, this.dispatch(draw, programs[i])]));
    const get = (/** @type {Draw} */ draw) => /** @type {Dispatch} */ (dispatches.get(draw));
    /** Dispatches of each group of the plan, by phase. */
    this.groups = {
      train: lowered.phases.train.map((draws) => draws.map(get)),
      evaluate: lowered.phases.evaluate.map((draws) => draws.map(get)),
      predict: lowered.phases.predict.map((draws) => draws.map(get)),
    };
    this.train = this.groups.train.flat();
    this.evaluate = this.groups.evaluate.flat();
    this.predict = this.groups.predict.flat();
    this.gathers = { epoch: lowered.gathers.epoch.map(get), stage: lowered.gathers.stage.map(get) };
    this.reductions = { train: get(lowered.reductions.train), evaluate: get(lowered.reductions.evaluate) };
    this.zeroSteps = new Steps(this.gl, 1);
    this.zeroSteps.set(0, 0, 0, 1);
    this.zeroSteps.upload(1);
    device.check();
  }

  /** @param {Draw} draw @param {WebGLProgram} program @returns {Dispatch} */
  dispatch(draw, program) {
    const { gl } = this;
    gl.useProgram(program);
    draw.reads.forEach(({ name }, unit) => gl.uniform1i(gl.getUniformLocation(program, `u${name}`), unit));
    const textures = (/** @type {0|1} */ parity) => draw.reads.map(({ slots }) => this.textures[slots[parity]]);
    return {
      program, draw, textures: [textures(0), textures(1)], framebuffers: [[], []],
      perSlot: draw.writes.some(({ layers }) => layers === "slot"), width: draw.width, height: draw.height,
    };
  }

  /** The framebuffer of a dispatch, made when it is first needed. @param {Dispatch} dispatch @param {number} parity @param {number} slot */
  framebuffer(dispatch, parity, slot) {
    const index = dispatch.perSlot ? slot : 0;
    const made = dispatch.framebuffers[/** @type {0|1} */ (parity)];
    if (made[index] === undefined) {
      const targets = dispatch.draw.writes.flatMap(({ slots, layers }) => {
        const texture = this.textures[slots[/** @type {0|1} */ (parity)]];
        return layers === "slot" ? [{ texture, layer: slot }] : Array.from({ length: layers }, (_, layer) => ({ texture, layer }));
      });
      made[index] = this.device.createFramebuffer(targets);
      this.framebuffers.push(made[index]);
    }
    return made[index];
  }

  /**
   * The hot path: allocates nothing, asks nothing.
   * @param {Dispatch[]} dispatches @param {number} slot batch in flight
   */
  run(dispatches, slot) {
    const { gl, bound, parity } = this;
    for (let d = 0; d < dispatches.length; d++) {
      const dispatch = dispatches[d];
      gl.useProgram(dispatch.program);
      gl.bindFramebuffer(gl.FRAMEBUFFER, dispatch.framebuffers[/** @type {0|1} */ (parity)][dispatch.perSlot ? slot : 0] ?? this.framebuffer(dispatch, parity, slot));
      gl.viewport(0, 0, dispatch.width, dispatch.height);
      const textures = dispatch.textures[/** @type {0|1} */ (parity)];
      for (let unit = 0; unit < textures.length; unit++) {
        if (bound[unit] === textures[unit]) continue;
        gl.activeTexture(gl.TEXTURE0 + unit);
        gl.bindTexture(gl.TEXTURE_2D_ARRAY, textures[unit]);
        bound[unit] = textures[unit];
      }
      gl.drawArrays(gl.TRIANGLES, 0, 3);
    }
  }

  /** Sums the row losses of the batches in flight into a line of the telemetry texture. @param {"train"|"evaluate"} phase @param {number} line */
  reduce(phase, line) {
    const { gl } = this;
    const dispatch = this.reductions[phase];
    gl.useProgram(dispatch.program);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.framebuffer(dispatch, 0, 0));
    gl.viewport(0, line, phase === "train" ? this.sizes.trainSlots : this.sizes.evaluateSlots, 1);
    this.bindTextures(dispatch.textures[0]);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }

  /** @param {WebGLTexture[]} textures */
  bindTextures(textures) {
    textures.forEach((texture, unit) => {
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
   * Submits `count` training steps whose scalars stand in `this.steps`, then the sums of their losses.
   * @param {number} count at most sizes.trainSlots @param {number} line of the telemetry
   */
  submitTraining(count, line) {
    this.enter();
    this.steps.upload(count);
    for (let i = 0; i < count; i++) {
      this.steps.bind(i);
      this.run(this.train, i);
      this.parity ^= 1;
    }
    this.reduce("train", line);
  }

  /**
   * Submits an evaluation of rows of the data set, in the order given to `setOrder("stage", ...)`.
   * @param {number} first first row of that order, a multiple of sizes.stage
   * @param {number} rows at most sizes.stage * sizes.evaluateSlots
   * @param {number} line of the telemetry
   * @returns {number} batches
   */
  submitEvaluation(first, rows, line) {
    this.enter();
    const { stage } = this.sizes;
    const batches = Math.ceil(rows / stage);
    for (let i = 0; i < batches; i++) this.evaluateSteps.set(i, Math.min(stage, rows - i * stage), first + i * stage, 1);
    this.evaluateSteps.upload(batches);
    for (let i = 0; i < batches; i++) {
      this.evaluateSteps.bind(i);
      this.run(this.gathers.stage, i);
      this.run(this.evaluate, i);
    }
    this.reduce("evaluate", line);
    return batches;
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
    const width = phase === "train" ? this.sizes.trainSlots : this.sizes.evaluateSlots;
    this.gl.bindFramebuffer(this.gl.FRAMEBUFFER, this.framebuffer(this.reductions[phase], 0, 0));
    const values = await readLater(this.device, { x: 0, y: line, width, height: lines });
    return (l, slot) => {
      const at = ((l - line) * width + slot) * 4;
      return { loss: values[at], finite: values[at + 1] === 0, correct: values[at + 2] };
    };
  }

  /** @param {string} name @returns {Place} */
  place(name) {
    const place = this.lowered.places.get(name);
    if (!place) throw new EngineError("internal", `no tensor ${name}`);
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
    this.zeroSteps?.bind(0);
    this.run(/** @type {any} */ (this.gathers).epoch, 0);
  }

  /**
   * Writes rows of the data set.
   * @param {"x"|"target"} name @param {number} firstRow @param {ArrayLike<number>} values [rows, columns]
   */
  writeData(name, firstRow, values) {
    const { slots, layout } = this.place(`${name}.data`);
    const { columns, texelsPerRow } = layout;
    const rows = values.length / columns;
    const texels = new Float32Array(rows * texelsPerRow * 4);
    if (columns === texelsPerRow * 4) texels.set(values);
    else for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) texels[r * texelsPerRow * 4 + c] = values[r * columns + c];
    this.upload(slots[0], firstRow * texelsPerRow, texels, false);
  }

  /** Writes rows into the staging tensor. @param {"x"|"target"} name @param {ArrayLike<number>} values [rows, columns], rows <= sizes.stage */
  writeStage(name, values) {
    const { slots, layout } = this.place(`${name}.stage`);
    const rows = values.length / layout.columns;
    const { width, height } = this.lowered.textures[slots[0]];
    this.uploadAll(slots[0], pack({ ...layout, rows }, values, null, width * height));
  }

  /** Uploads consecutive texels of a one-layer texture. @param {number} slot @param {number} first @param {Float32Array|Int32Array} texels @param {boolean} int */
  upload(slot, first, texels, int) {
    const { gl, device } = this;
    const { width } = this.lowered.textures[slot];
    const lanes = int ? 1 : 4;
    const count = texels.length / lanes;
    const { format, type, view } = int ? { format: gl.RED_INTEGER, type: gl.INT, view: texels } : device.transfer(texels.buffer);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.textures[slot]);
    this.bound[0] = null;
    for (let done = 0; done < count; ) {
      const x = (first + done) % width;
      const y = Math.floor((first + done) / width);
      // The rest of a line that was begun, then whole lines, then the beginning of one.
      const lines = x === 0 ? Math.floor((count - done) / width) : 0;
      const size = lines > 0 ? lines * width : Math.min(width - x, count - done);
      gl.texSubImage3D(
        gl.TEXTURE_2D_ARRAY, 0, x, y, 0, lines > 0 ? width : size, Math.max(1, lines), 1, format, type,
        /** @type {any} */ (view).subarray(done * lanes, (done + size) * lanes),
      );
      done += size;
    }
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

  /** @param {string} name a parameter or state @param {ArrayLike<number>} data @param {ArrayLike<number>|null} bias */
  writeParameter(name, data, bias) {
    const { slots, layout } = this.place(name);
    const { width, height } = this.lowered.textures[slots[0]];
    this.uploadAll(slots[this.parity], pack(layout, data, bias, width * height));
  }

  /**
   * Reads a tensor as it is now, synchronously.
   * @param {string} name @param {number} [parity] of the step whose value is wanted
   * @returns {{data: Float32Array, bias: Float32Array|null, texels: Float32Array}} `texels`: all that the texture holds, padding too
   */
  readTensor(name, parity = this.parity) {
    const { gl, device } = this;
    const { slots, layout } = this.place(name);
    const slot = slots[/** @type {0|1} */ (parity)];
    const { width, height, layers } = this.lowered.textures[slot];
    const texels = new Float32Array(layers * width * height * 4);
    for (let layer = 0; layer < layers; layer++) {
      const framebuffer = device.createFramebuffer([{ texture: this.textures[slot], layer }]);
      const { format, type, view } = device.transfer(texels.buffer);
      const size = width * height * 4;
      gl.readPixels(0, 0, width, height, format, type, /** @type {any} */ (view).subarray(layer * size, (layer + 1) * size));
      device.deleteFramebuffer(framebuffer);
    }
    device.check();
    return { ...unpack(layout, texels, width * height), texels };
  }

  /** Lines of telemetry that may be written before they are read. */
  get telemetryLines() {
    return TELEMETRY_LINES;
  }

  dispose() {
    for (const framebuffer of this.framebuffers) this.device.deleteFramebuffer(framebuffer);
    this.textures.forEach((texture, slot) => this.device.deleteTexture(texture, this.lowered.textures[slot]));
    for (const steps of [this.steps, this.evaluateSteps, this.zeroSteps]) steps?.dispose();
    this.textures = [];
    this.framebuffers = [];
  }
}
