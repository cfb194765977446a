// Executable: a lowered plan on a device. Submits the fixed lists of draws of training, and reads what they report; evaluator.js submits the others.
import { EngineError } from "../../errors.js";
import { Dispatches } from "./dispatch.js";
import { Evaluator } from "./evaluator.js";
import { fingerprint } from "./programs.js";
import { readLater } from "./readback.js";
import { kernelText } from "./shader_source.js";
import { Steps } from "./steps.js";
import { Tensors } from "./tensors.js";

/** @import { Device } from "./device.js" */
/** @import { Dispatch } from "./dispatch.js" */
/** @import { Draw } from "./draw.js" */
/** @import { Lowered } from "./lower.js" */
/** @import { Kernel } from "./programs.js" */

/** Sums of one batch: its loss (mean over the batch in training, sum over the rows in evaluation), whether that is finite, right predictions; the
 * norm of the gradient of the step that it ended, where that is made.
 * @typedef {{loss: number, finite: boolean, correct: number, norm?: number}} Sums */

export class Executable {
  /**
   * Allocates the textures and starts to compile what training runs, in parallel where the driver can; `compiled` says when that is done. What
   * evaluates, predicts and gathers is compiled behind the first step, or when it is asked for.
   * @param {Device} device @param {Lowered} lowered
   */
  constructor(device, lowered) {
    const started = performance.now();
    const { phases, step, gathers, reductions } = lowered;
    const first = [...step.batch, ...step.end, reductions.train.draw];
    const rest = [...gathers.epoch, ...phases.evaluate.flat(), ...phases.predict.flat(), ...gathers.stage, reductions.evaluate.draw];
    this.device = device;
    this.gl = device.gl;
    this.lowered = lowered;
    /** Of all draws. @type {Map<Draw, Kernel>} */
    this.sources = new Map();
    const write = (/** @type {Draw} */ draw) => this.sources.set(draw, kernelText(draw.source, device.shaders, device.dialect));
    for (const draw of first) {
      write(draw);
      this.startCompiling(draw);
    }
    rest.forEach(write);
    this.fingerprint = fingerprint([...this.sources.values()].map(({ text }) => text));
    this.sizes = lowered.sizes;
    this.tensors = new Tensors(device, lowered);
    this.dispatches = new Dispatches(device, this.tensors);
    /** GL calls of all steps submitted so far; counted where they are made. */
    this.glCalls = 0;
    this.steps = new Steps(this.gl, this.sizes.trainSlots);
    this.evaluator = new Evaluator(this);
    /** Batches in flight whose framebuffers are made. */
    this.prepared = 0;
    this.disposed = false;
    /** Dispatches by their draws, made when they are first asked for. @type {Map<Draw, Dispatch>} */
    this.made = new Map();
    /** Dispatches of each group of the plan. @type {Dispatch[][]} */
    this.groups = [];
    /** Those of a step. @type {Dispatch[]} */
    this.train = [];
    /** What every batch runs, and what the last one of a step runs besides. @type {Dispatch[]} */
    this.batch = [];
    /** @type {Dispatch[]} */
    this.updates = [];
    for (const { name, values } of lowered.constants) this.tensors.writeParameter(name, values, null);
    /** Resolves once training can run; rejects with what a compiler or the driver says. */
    this.compiled = this.compile(first);
    this.compileMs = 0;
    this.compiled.then(() => (this.compileMs = performance.now() - started), () => {}); // whoever awaits it hears of what fails
  }

  /** @param {Draw} draw */
  startCompiling(draw) {
    const kernel = /** @type {Kernel} */ (this.sources.get(draw));
    this.device.programs.start(kernel);
    return kernel;
  }

  /**
   * Drivers finish a program at its first draw, and a software renderer compiles most of it there: each draws one texel as soon as it is linked,
   * while the next one is. No rows, and only what the first step writes anew.
   * @param {Draw[]} draws of training
   */
  async compile(draws) {
    const { gl, device } = this;
    this.steps.upload(1);
    for (const draw of draws) {
      await device.programs.finish(this.startCompiling(draw));
      if (this.disposed) return;
      const dispatch = this.dispatch(draw), { bands = 1 } = /** @type {Kernel} */ (this.sources.get(draw));
      this.enter();
      this.steps.bind(0);
      gl.useProgram(dispatch.program);
      gl.bindFramebuffer(gl.FRAMEBUFFER, this.dispatches.framebuffer(dispatch, 0, 0));
      gl.viewport(0, dispatch.y, 1, bands === 1 ? 1 : 2 * bands);
      this.bindTextures(dispatch);
      dispatch.sequence?.bind();
      gl.drawArrays(gl.TRIANGLES, 0, 3);
      gl.flush();
    }
    device.check();
    const { phases, step } = this.lowered;
    this.groups = phases.train.map((group) => this.all(group));
    this.batch = this.all(step.batch);
    this.updates = this.all(step.end);
    this.train = [...this.batch, ...this.updates];
  }

  /** Compiles all that training did not wait for, behind what it runs. */
  compileRest() {
    if (this.disposed || this.gl.isContextLost()) return;
    for (const draw of this.sources.keys()) this.startCompiling(draw);
  }

  /** @param {Draw} draw @returns {Dispatch} */
  dispatch(draw) {
    let dispatch = this.made.get(draw);
    if (!dispatch) {
      dispatch = this.dispatches.make(draw, this.device.programs.now(this.startCompiling(draw)));
      this.made.set(draw, dispatch);
    }
    return dispatch;
  }

  /** @param {Draw[]} draws */
  all(draws) {
    return draws.map((draw) => this.dispatch(draw));
  }

  /** Makes the framebuffers of flights of up to `count` training steps, so that submitting them makes nothing. @param {number} count */
  prepare(count) {
    this.dispatches.framebuffer(this.reduction("train"), 0, 0);
    for (; this.prepared < count; this.prepared++) {
      const states = this.updates.length > 0 ? [0, 1, 2, 3] : [0, 3];
      for (const dispatch of this.train) for (const state of states) this.dispatches.framebuffer(dispatch, state, this.prepared);
    }
  }

  /**
   * The hot path: allocates nothing, asks nothing.
   * @param {Dispatch[]} dispatches @param {number} slot batch in flight
   */
  run(dispatches, slot) {
    const { gl } = this;
    const { bound, state } = this.tensors;
    /** @type {WebGLFramebuffer|null} */
    let framebuffer = null;
    for (let d = 0; d < dispatches.length; d++) {
      const dispatch = dispatches[d];
      gl.useProgram(dispatch.program);
      const target = dispatch.framebuffers[state][dispatch.perSlot ? slot : 0] ?? this.dispatches.framebuffer(dispatch, state, slot);
      if (target !== framebuffer) {
        gl.bindFramebuffer(gl.FRAMEBUFFER, target);
        framebuffer = target;
        this.glCalls += 1;
      }
      gl.viewport(0, dispatch.y, dispatch.width, dispatch.height);
      const textures = dispatch.textures[state];
      for (let i = 0; i < textures.length; i++) {
        const unit = dispatch.units[i];
        if (bound[unit] === textures[i]) continue;
        gl.activeTexture(gl.TEXTURE0 + unit);
        gl.bindTexture(gl.TEXTURE_2D_ARRAY, textures[i]);
        bound[unit] = textures[i];
        this.glCalls += 2;
      }
      if (dispatch.sequence) this.glCalls += 2 + dispatch.sequence.draw();
      else {
        gl.drawArrays(gl.TRIANGLES, 0, 3);
        this.glCalls += 3;
      }
    }
  }

  /** Sums the row losses of the batches in flight into a line of the telemetry texture. @param {"train"|"evaluate"} phase @param {number} line */
  reduce(phase, line) {
    const { gl } = this;
    const dispatch = this.reduction(phase);
    gl.useProgram(dispatch.program);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.dispatches.framebuffer(dispatch, 0, 0));
    const { parts } = this.lowered.reductions[phase];
    gl.viewport(0, line * parts, this.slots(phase), parts);
    this.bindTextures(dispatch);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    this.glCalls += 4 + 2 * dispatch.textures[0].length;
  }

  /** @param {"train"|"evaluate"} phase @returns {Dispatch} */
  reduction(phase) {
    return this.dispatch(this.lowered.reductions[phase].draw);
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
      this.tensors.bound[unit] = texture;
    });
  }

  /** Another executable, or an upload, may have used the context: forget what is bound. */
  enter() {
    this.tensors.bound.length = 0;
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
        this.tensors.parity ^= 1;
      }
      this.tensors.half ^= 1;
    }
    // One more for each step's scalars, two for their upload, one to enter.
    this.glCalls += count + 3;
    this.reduce("train", line);
  }

  /**
   * Runs the first step whose scalars stand in `this.steps` group by group, without taking it: the new parameters are left in the textures of
   * the other parity, where the next step overwrites them. No update waits, so that what its group read is still there.
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
   * Reads the first lines of the telemetry, without stalling: what is submitted from now on may write them.
   * @param {"train"|"evaluate"} phase @param {number} lines
   * @returns {Promise<(line: number, slot: number) => Sums>}
   */
  async readTelemetry(phase, lines) {
    this.enter();
    const width = this.slots(phase);
    const { parts, norm } = this.lowered.reductions[phase];
    this.gl.bindFramebuffer(this.gl.FRAMEBUFFER, this.dispatches.framebuffer(this.reduction(phase), 0, 0));
    const values = await readLater(this.device, { x: 0, y: 0, width, height: lines * parts }, 4);
    return (line, slot) => {
      const sums = { loss: 0, finite: true, correct: 0 };
      for (let part = 0; part < parts; part++) {
        const at = ((line * parts + part) * width + slot) * 4;
        // Every sum that was really made says so.
        if (values[at + 3] !== 1) throw new EngineError("context_lost", "the GPU process died: what was read from it is not real");
        sums.loss += values[at];
        sums.finite &&= values[at + 1] === 0;
        sums.correct += values[at + 2];
      }
      return norm ? { ...sums, correct: 0, norm: sums.correct } : sums;
    };
  }

  /** Lines of telemetry that may be written before a read of them is submitted. */
  get telemetryLines() {
    const { train, evaluate } = this.lowered.reductions;
    return Math.min(train.lines, evaluate.lines);
  }

  /** Hands what was submitted to the GPU process now. */
  flush() {
    this.gl.flush();
  }

  dispose() {
    this.disposed = true;
    this.steps.dispose();
    this.evaluator.dispose();
    this.dispatches.dispose();
    this.tensors.dispose();
  }
}
