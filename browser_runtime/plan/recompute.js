// Recomputation: tensors that are cheaper to compute again wherever they are read than to store and fetch. The same for all backends.
import { readersOf, size } from "../nn/graph.js";

/** @import { Graph, Op } from "../nn/graph.js" */
/** @import { Group } from "./fuse.js" */

/**
 * How a tensor is computed where it is read: `product` sums over few columns of its first input, `activation` bends that or applies the slope.
 * @typedef {{product: Op, activation: Op|null}} Computed
 */

/** Columns that a product may sum over: a backend holds that many in one vector, and they take the place of the one that would be fetched. */
const FEW = 4;

/** What may follow each product. @type {Record<string, string>} */
const BENT_BY = { affine: "activation", affine_grad_input: "activation_grad" };

/** Activations that cost next to nothing. */
const CHEAP = ["relu"];

/**
 * Takes out the groups whose one output no longer needs to be stored, and lets its readers read what it is computed from.
 * @param {Graph} graph @param {Group[]} groups @param {Set<string>} keep tensors that must be stored
 * @returns {{groups: Group[], computed: Map<string, Computed>}}
 */
export function recompute(graph, groups, keep) {
  /** @type {Map<string, Computed>} */
  const computed = new Map();
  const readers = readersOf(groups);
  const stored = groups.filter((group) => {
    const [name, ...others] = Object.values(group.outputs);
    const how = others.length === 0 && !keep.has(name) && cheap(graph, group, computed);
    if (!how) return true;
    if (!(readers.get(name) ?? []).every((reader) => mayCompute(graph, reader, name, how))) return true;
    computed.set(name, how);
    return false;
  });
  return { groups: stored.map((group) => expand(group, computed)), computed };
}

/**
 * How a group's output could be computed again, if that is cheap: not from what is itself computed again, or a chain of layers would be.
 * @param {Graph} graph @param {Group} group @param {Map<string, Computed>} computed so far @returns {Computed|null}
 */
function cheap(graph, { kernel, ops: [product, activation, ...more] }, computed) {
  if (!(kernel in BENT_BY) || more.length > 0) return null;
  if (activation && (activation.type !== BENT_BY[kernel] || !CHEAP.includes(activation.attrs.fn))) return null;
  const operand = product.inputs.x ?? product.inputs.dy;
  if (computed.has(operand)) return null;
  const { shape } = graph.tensor(operand);
  return shape.length === 1 && size(shape) <= FEW ? { product, activation: activation ?? null } : null;
}

/**
 * Whether a kernel can compute what it reads, and reads each value few times: what is read by many fragments is cheaper to fetch (measured:
 * docs/performance.md).
 * @param {Graph} graph @param {Group} reader @param {string} name @param {Computed} how
 */
function mayCompute(graph, { kernel, ops }, name, { product }) {
  const [first] = ops;
  const few = (/** @type {string} */ tensor) => size(graph.tensor(tensor).shape) <= FEW;
  if (product.type === "affine_grad_input") return kernel === "affine_grad_weights" && first.inputs.dy === name && few(first.inputs.x);
  if (kernel === "affine") return first.inputs.x === name && few(first.outputs.y);
  if (kernel === "affine_grad_weights") return first.inputs.x === name && few(first.inputs.dy);
  const grad = ops.find((op) => op.type === "activation_grad");
  return kernel === "affine_grad_input" && grad?.inputs.y === name && first.inputs.dy !== name;
}

/** A group that reads what its inputs are computed from. @param {Group} group @param {Map<string, Computed>} computed @returns {Group} */
function expand(group, computed) {
  /** @type {Record<string, string>} */
  const inputs = {};
  /** @type {Op[]} */
  const recomputed = [];
  /** @type {Set<string>} */
  const visited = new Set();
  const visit = (/** @type {string} */ key, /** @type {string} */ name) => {
    if (visited.has(name)) return;
    visited.add(name);
    const how = computed.get(name);
    if (!how) {
      inputs[key] = name;
      return;
    }
    const { product, activation } = how;
    const ops = activation ? [product, activation] : [product];
    for (const op of ops) {
      for (const [inner, input] of Object.entries(op.inputs)) if (input !== product.outputs.y && input !== product.outputs.dx) visit(`${key}.${inner}`, input);
    }
    recomputed.push(...ops);
  };
  for (const [key, name] of Object.entries(group.inputs)) visit(key, name);
  return { ...group, inputs, recomputed };
}
