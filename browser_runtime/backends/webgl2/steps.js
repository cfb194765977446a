// Steps: the scalars of the steps in flight, as one uniform buffer each (shaders/lib/step.glsl).

const STRIDE = 256; // bytes; no device asks for a larger UNIFORM_BUFFER_OFFSET_ALIGNMENT
const BYTES = 64;
/** Scalars that an optimizer may write for each step. */
const SCALARS = 12;
const BUFFERS = 8; // rotated, so that the driver need not wait for the steps that still read one

export class Steps {
  /** @param {WebGL2RenderingContext} gl @param {number} capacity steps of one flight */
  constructor(gl, capacity) {
    this.gl = gl;
    this.data = new ArrayBuffer(capacity * STRIDE);
    this.ints = new Int32Array(this.data);
    this.floats = new Float32Array(this.data);
    this.bytes = new Uint8Array(this.data);
    this.buffers = Array.from({ length: BUFFERS }, () => {
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.UNIFORM_BUFFER, buffer);
      gl.bufferData(gl.UNIFORM_BUFFER, this.data.byteLength, gl.DYNAMIC_DRAW);
      return buffer;
    });
    this.current = 0;
    /** Which batches of the flight end a step. */
    this.ends = new Uint8Array(capacity).fill(1);
    /** Where the optimizer writes its scalars for each step: uOptimizer. */
    this.scalars = Array.from({ length: capacity }, (_, i) => this.floats.subarray((i * STRIDE) / 4 + 4, (i * STRIDE) / 4 + 4 + SCALARS));
  }

  /**
   * @param {number} i step of the flight @param {number} rows samples @param {number} firstRow
   * @param {number} inverseRows 1 / samples of all the batches of its step
   * @param {number} [batch] of the run, counted from 0 @param {boolean} [ends] whether its step ends with it
   */
  set(i, rows, firstRow, inverseRows, batch = 0, ends = true) {
    const at = (i * STRIDE) / 4;
    this.ints[at] = rows;
    this.ints[at + 1] = firstRow;
    this.floats[at + 2] = inverseRows;
    this.ints[at + 3] = batch;
    this.ends[i] = Number(ends);
  }

  /** @param {number} count */
  upload(count) {
    const { gl } = this;
    this.current = (this.current + 1) % BUFFERS;
    gl.bindBuffer(gl.UNIFORM_BUFFER, this.buffers[this.current]);
    gl.bufferSubData(gl.UNIFORM_BUFFER, 0, this.bytes, 0, count * STRIDE);
  }

  /** @param {number} i */
  bind(i) {
    this.gl.bindBufferRange(this.gl.UNIFORM_BUFFER, 0, this.buffers[this.current], i * STRIDE, BYTES);
  }

  dispose() {
    for (const buffer of this.buffers) this.gl.deleteBuffer(buffer);
  }
}
