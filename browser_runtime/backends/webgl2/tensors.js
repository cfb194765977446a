// Tensors: the textures of a lowered plan on a device, and the numbers in them: uploads and reads, whole or by rows.
import { filled, pack, roundUp, textureBytes, ungated, unpack } from "./layout.js";
import { fedAt } from "./places.js";
import { readBits, readLater, readNow } from "./readback.js";

/** @import { Device } from "./device.js" */
/** @import { Place } from "./draw.js" */
/** @import { Lowered } from "./lower.js" */

export class Tensors {
  /** @param {Device} device @param {Lowered} lowered */
  constructor(device, lowered) {
    this.device = device;
    this.gl = device.gl;
    this.lowered = lowered;
    this.sizes = lowered.sizes;
    const before = device.live.textureBytes;
    /** @type {WebGLTexture[]} */
    this.textures = lowered.textures.map((size) => device.createTexture(size));
    /** Beside the textures that are copied. @type {(WebGLBuffer|null)[]} */
    this.buffers = lowered.textures.map((size) => (size.copied ? device.createBuffer(textureBytes(size)) : null));
    this.bytes = device.live.textureBytes - before;
    /** Which of the ping-pong textures holds the parameters: every step changes it. */
    this.parity = 0;
    /** Which of them holds what every batch changes; the same where a step has one batch. */
    this.half = 0;
    /** What is bound, by texture unit. @type {(WebGLTexture|null)[]} */
    this.bound = [];
    /** For reads of whole tensors: a framebuffer for each layer. @type {Map<string, WebGLFramebuffer[]>} */
    this.readers = new Map();
  }

  /** @param {number} slot */
  texture(slot) {
    return this.textures[this.lowered.slots[slot].texture];
  }

  /** Of both clocks: what tells which textures are read and written. */
  get state() {
    return this.parity | (this.half << 1);
  }

  /** @param {string} name @returns {Place} */
  place(name) {
    const place = this.lowered.places.get(name);
    if (!place) throw new Error(`no tensor ${name}`);
    return place;
  }

  /**
   * Writes rows of the data set.
   * @param {string} name @param {number} firstRow @param {ArrayLike<number>} values [rows, columns]
   */
  writeData(name, firstRow, values) {
    const { slots, layout } = this.place(fedAt("data", name));
    const { columns, texelsPerRow } = layout;
    const rows = values.length / columns;
    const { lanes } = this.lowered.slots[slots[0]];
    const texels = pack({ ...layout, rows, folded: false }, values, null, { width: texelsPerRow, height: rows, lanes });
    if (layout.folded) this.upload(slots[0], firstRow * texelsPerRow, texels);
    else this.uploadBox(slots[0], { x: 0, y: firstRow, width: texelsPerRow, height: rows }, texels);
  }

  /** Numbers of a row. @param {string} name */
  columns(name) {
    return this.place(fedAt("stage", name)).layout.columns;
  }

  /**
   * Writes batches among those that are trained on.
   * @param {string} name @param {number} first row where a batch starts
   * @param {ArrayLike<number>} values [rows, columns], all batches but the last one padded to sizes.batch rows; zeros follow up to its end
   */
  writeEpoch(name, first, values) {
    const { slots, layout } = this.place(fedAt("epoch", name));
    const { layers, texelsPerRow, folded } = layout;
    const { lanes } = this.lowered.slots[slots[0]];
    const rows = values.length / layout.columns;
    const groups = roundUp(rows, this.sizes.batch) / layers;
    const count = groups * texelsPerRow;
    const texels = pack({ ...layout, rows, blockRows: rows, folded: true }, values, null, { width: count, height: 1, lanes });
    for (let layer = 0; layer < layers; layer++) {
      const part = texels.subarray(layer * count * lanes, (layer + 1) * count * lanes);
      if (folded) this.upload(slots[0], (first / layers) * texelsPerRow, part, layer);
      else this.uploadBox(slots[0], { x: 0, y: first / layers, width: texelsPerRow, height: groups }, part, layer);
    }
  }

  /** Writes rows into the staging tensor. @param {string} name @param {ArrayLike<number>} values [rows, columns], rows <= sizes.stage */
  writeStage(name, values) {
    const { slots, layout } = this.place(fedAt("stage", name));
    const rows = values.length / layout.columns;
    this.uploadAll(slots[0], pack({ ...layout, rows }, values, null, this.lowered.slots[slots[0]]));
  }

  /** Uploads consecutive texels of a layer of a folded texture. @param {number} slot @param {number} first @param {Float32Array|Int32Array} texels @param {number} [layer] */
  upload(slot, first, texels, layer = 0) {
    const { width, lanes } = this.lowered.slots[slot];
    const count = texels.length / lanes;
    for (let done = 0; done < count; ) {
      const x = (first + done) % width;
      const y = Math.floor((first + done) / width);
      // The rest of a line that was begun, then whole lines, then the beginning of one.
      const lines = x === 0 ? Math.floor((count - done) / width) : 0;
      const size = lines > 0 ? lines * width : Math.min(width - x, count - done);
      const box = { x, y, width: lines > 0 ? width : size, height: Math.max(1, lines) };
      this.uploadBox(slot, box, texels.subarray(done * lanes, (done + size) * lanes), layer);
      done += size;
    }
  }

  /**
   * @param {number} slot @param {{x: number, y: number, width: number, height: number}} box within the slot
   * @param {Float32Array|Int32Array} texels @param {number} [layer]
   */
  uploadBox(slot, { x, y, width, height }, texels, layer = 0) {
    const { gl, device } = this;
    const { y: top, lanes, numbers } = this.lowered.slots[slot];
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.texture(slot));
    this.bound[0] = null;
    const { format, type } = numbers === "int" ? { format: gl.RED_INTEGER, type: gl.INT } : device.transfer(undefined, lanes);
    const view = numbers === "int" || device.format === "rgba32f" ? texels : new Uint32Array(texels.buffer, texels.byteOffset, texels.length);
    gl.texSubImage3D(gl.TEXTURE_2D_ARRAY, 0, x, top + y, layer, width, height, 1, format, type, view);
  }

  /** @param {number} slot @param {Float32Array} texels [layers, height, width, lanes] */
  uploadAll(slot, texels) {
    const { gl, device } = this;
    const { y, width, height, layers, lanes } = this.lowered.slots[slot];
    const { format, type, view } = device.transfer(texels.buffer, lanes);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D_ARRAY, this.texture(slot));
    this.bound[0] = null;
    gl.texSubImage3D(gl.TEXTURE_2D_ARRAY, 0, 0, y, 0, width, height, layers, format, type, /** @type {any} */ (view));
  }

  /** @param {string} name a parameter, state or buffer @param {ArrayLike<number>} data @param {ArrayLike<number>|null} bias */
  writeParameter(name, data, bias) {
    const place = this.place(name);
    const { slots, layout } = place;
    this.uploadAll(slotOf(place, this.state), pack(layout, data, bias, this.lowered.slots[slots[0]]));
  }

  /**
   * Reads a tensor as it is now, synchronously.
   * @param {string} name @param {number} [parity] of the step whose value is wanted
   * @returns {{data: Float32Array, bias: Float32Array|null, texels: Float32Array}} `texels`: all that its slot holds, padding too
   */
  readTensor(name, parity = this.parity) {
    const { device } = this;
    const place = this.place(name);
    if (place.gated) return this.readGated(place.layout, place.gated);
    const { layout } = place;
    // Both clocks turn where the other value is asked for.
    const slot = slotOf(place, this.state ^ (parity === this.parity ? 0 : 3));
    const { y, width, height, layers, lanes } = this.lowered.slots[slot];
    const size = width * height * lanes;
    const texels = new Float32Array(layers * size);
    for (let layer = 0; layer < layers; layer++) {
      texels.set(readNow(device, { texture: this.texture(slot), layer }, { x: 0, y, width, height }, lanes), layer * size);
    }
    this.checkAlive();
    return { ...unpack(layout, texels, { width, height, lanes }), texels };
  }

  /** Reads what gates and factors stand for. @param {import("./layout.js").Layout} layout @param {import("./draw.js").Gated} gated */
  readGated(layout, { gates, factors }) {
    const [gateSlot, factorSlot] = [gates, factors].map(({ slots: [slot] }) => slot);
    const { width, height } = this.lowered.slots[gateSlot];
    const box = { x: 0, y: 0, width, height };
    const bits = readBits(this.device, { texture: this.texture(gateSlot), layer: 0 }, box);
    const texels = readNow(this.device, { texture: this.texture(factorSlot), layer: 0 }, box, 4);
    this.checkAlive();
    return { data: ungated(layout, gates.layout, bits, texels), bias: null, texels };
  }

  /**
   * Reads rows of the epoch's batches, synchronously.
   * @param {string} name @param {number} first a row that starts a batch @param {number} rows @returns {Float32Array} [rows, columns]
   */
  readEpoch(name, first, rows) {
    const { slots, layout } = this.place(fedAt("epoch", name));
    const { width, lanes } = this.lowered.slots[slots[0]];
    const [from, count] = [(first / layout.layers) * layout.texelsPerRow, Math.ceil(rows / layout.layers) * layout.texelsPerRow];
    const [top, bottom] = [Math.floor(from / width), Math.ceil((from + count) / width)];
    // A plain texture is as wide as a row, so that in both the texels of some groups follow each other.
    const texels = new Float32Array(layout.layers * count * lanes);
    for (let layer = 0; layer < layout.layers; layer++) {
      const lines = readNow(this.device, { texture: this.texture(slots[0]), layer }, { x: 0, y: top, width, height: bottom - top }, lanes);
      const start = (from - top * width) * lanes;
      texels.set(lines.subarray(start, start + count * lanes), layer * count * lanes);
    }
    this.checkAlive();
    return unpack({ ...layout, rows, blockRows: rows, folded: true }, texels, { width: count, height: 1, lanes }).data;
  }

  /**
   * Reads the first rows of a tensor as the draws submitted so far leave it, without stalling.
   * @param {string} name @param {number} rows
   * @returns {Promise<Float32Array>} [rows, columns]
   */
  async readTensorLater(name, rows) {
    const { gl, device } = this;
    const { slots, layout } = this.place(name);
    const { layers, columns } = layout;
    const { width: line, lanes } = this.lowered.slots[slots[0]];
    // A texture that tensors share may be larger than this one.
    const { width, height } = filled(layout, line);
    if (!this.readers.has(name)) {
      this.readers.set(name, Array.from({ length: layers }, (_, layer) => device.createFramebuffer([{ texture: this.texture(slots[0]), layer }])));
    }
    const reads = /** @type {WebGLFramebuffer[]} */ (this.readers.get(name)).map((framebuffer) => {
      gl.bindFramebuffer(gl.FRAMEBUFFER, framebuffer);
      return readLater(device, { x: 0, y: 0, width, height }, lanes);
    });
    const size = width * height * lanes;
    const all = new Float32Array(layers * size);
    (await Promise.all(reads)).forEach((read, layer) => all.set(read, layer * size));
    return unpack(layout, all, { width, height, lanes }).data.subarray(0, rows * columns);
  }

  /**
   * Reads the row losses of the first batch in flight.
   * @param {string} name of a `rows` tensor @param {number} rows @returns {Float64Array} [rows]
   */
  readRows(name, rows) {
    const { slots, layout } = this.place(name);
    const { width, height, lanes } = this.lowered.slots[slots[0]];
    const texels = readNow(this.device, { texture: this.texture(slots[0]), layer: 0 }, { x: 0, y: 0, width, height }, lanes);
    this.checkAlive();
    // A texel holds the parts of `perTexel` rows that one column texel makes: the rows of a fragment of the draw that writes it.
    const writer = this.lowered.phases.train.flat().find(({ writes }) => writes.some((write) => write.slots[0] === slots[0]));
    const perTexel = writer ? writer.source.domain.layers : 1;
    const out = new Float64Array(rows);
    for (let row = 0; row < rows; row++) {
      const first = Math.floor(row / perTexel) * (layout.folded ? layout.texelsPerRow : width);
      for (let n = 0; n < layout.texelsPerRow; n++) out[row] += texels[(first + n) * lanes + (row % perTexel)];
    }
    return out;
  }

  /** Throws where what was read last may not be real. */
  checkAlive() {
    this.device.checkAlive();
    // The texture of a probe took the place of whatever was bound.
    this.bound.length = 0;
  }

  dispose() {
    for (const framebuffer of [...this.readers.values()].flat()) this.device.deleteFramebuffer(framebuffer);
    this.textures.forEach((texture, i) => this.device.deleteTexture(texture, this.lowered.textures[i]));
    this.buffers.forEach((buffer, i) => buffer && this.device.deleteBuffer(buffer, textureBytes(this.lowered.textures[i])));
    this.readers.clear();
    this.textures = [];
    this.buffers = [];
  }
}

/** The slot of a place in a state of the two clocks: bit 0 is that of steps, bit 1 of batches.
 * @param {{slots: [number, number], clock?: "batch"}} place @param {number} state */
export const slotOf = ({ slots, clock }, state) => slots[/** @type {0|1} */ (clock === "batch" ? state >> 1 : state & 1)];
