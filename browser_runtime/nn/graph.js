// The logical graph: named tensors and the primitive ops between them. No GL, no layout, no batch size.

/** `multiplier` of the learning rate; `decay`: whether penalties and weight decay count. @typedef {{multiplier: number, decay: boolean}} Training */

/**
 * A logical tensor. `shape` leaves the batch out where `batched` is true. A parameter is a matrix [rows, columns] whose bias,
 * if it has one, is held with it and exported separately.
 * @typedef {object} Tensor
 * @property {string} name
 * @property {"input"|"target"|"parameter"|"state"|"buffer"|"statistics"|"activation"|"gradient"|"constant"|"accumulator"|"rows"} kind `buffer`: kept from step to step, not
 *   trained; `statistics`: a row of numbers of a batch
 * @property {number[]} shape
 * @property {boolean} batched
 * @property {boolean} [bias] parameters, their states and gradients: whether they have a bias row
 * @property {number[]} [values] constants: what they hold
 * @property {Training|null} [training] parameters: how they are trained; null: not at all
 */

/**
 * A primitive op. `inputs` and `outputs` map the op's own names (x, w, y ...) to tensor names.
 * @typedef {object} Op
 * @property {string} type
 * @property {Record<string, string>} inputs
 * @property {Record<string, string>} outputs
 * @property {Record<string, any>} attrs
 */

/** Elements of a shape. @param {number[]} shape */
export const size = (shape) => shape.reduce((a, b) => a * b, 1);

/**
 * Who reads each tensor, in their order, each once.
 * @template {{inputs: Record<string, string>}} T ops, or groups of them
 * @param {T[]} all
 * @returns {Map<string, T[]>}
 */
export function readersOf(all) {
  /** @type {Map<string, T[]>} */
  const readers = new Map();
  for (const one of all) {
    for (const name of new Set(Object.values(one.inputs))) {
      const others = readers.get(name);
      if (others) others.push(one);
      else readers.set(name, [one]);
    }
  }
  return readers;
}

export class Graph {
  constructor() {
    /** @type {Map<string, Tensor>} */
    this.tensors = new Map();
    /** @type {Op[]} */
    this.ops = [];
  }

  /**
   * @param {Tensor} tensor
   * @returns {string} its name
   */
  add(tensor) {
    if (this.tensors.has(tensor.name)) throw new Error(`tensor ${tensor.name} exists already`);
    this.tensors.set(tensor.name, tensor);
    return tensor.name;
  }

  /** @param {string} name @returns {Tensor} */
  tensor(name) {
    const tensor = this.tensors.get(name);
    if (!tensor) throw new Error(`no tensor ${name}`);
    return tensor;
  }

  /**
   * @param {string} type
   * @param {Record<string, string>} inputs
   * @param {Record<string, string>} outputs
   * @param {Record<string, any>} [attrs]
   */
  op(type, inputs, outputs, attrs = {}) {
    for (const name of [...Object.values(inputs), ...Object.values(outputs)]) this.tensor(name);
    this.ops.push({ type, inputs, outputs, attrs });
  }
}
