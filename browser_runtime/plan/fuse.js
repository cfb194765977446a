// Fusion: partitions a graph's ops into groups, each of which one kernel can compute. The rules are the same for all backends.
import { readersOf, size } from "../nn/graph.js";
import { losses } from "../nn/losses.js";

/** @import { Graph, Op } from "../nn/graph.js" */

/**
 * A group of primitive ops that one kernel computes, in order. Tensors that pass between them alone are never stored.
 * @typedef {object} Group
 * @property {string} kernel its family: the type of the first op, which decides the loops
 * @property {Op[]} ops
 * @property {Op[]} recomputed what it computes again before them, see recompute.js
 * @property {Record<string, string>} inputs tensors that the group reads, by the first name under which an op reads them
 * @property {Record<string, string>} outputs tensors that the group stores
 */

const LOSS_FAMILY = ["loss", "loss_grad", "accuracy", "activation_grad"];

/**
 * What may follow a kernel's loops in the same fragment. A stage applies where *all* readers of the tensor made so far are of its types.
 * @type {Record<string, {types: string[], when?: (graph: Graph, readers: Op[], first: Op) => boolean}[]>}
 */
const epilogues = {
  affine: [{ types: ["activation"], when: isOne }, { types: LOSS_FAMILY, when: seesWholeRows }],
  loss: [{ types: LOSS_FAMILY }],
  affine_grad_input: [{ types: ["activation_grad"], when: isOne }],
  affine_grad_weights: [{ types: ["update"] }],
  conv2d: [{ types: ["activation"], when: isOne }],
  conv2d_grad_input: [{ types: ["activation_grad"], when: isOne }],
  conv2d_grad_weights: [{ types: ["update"] }],
  embedding_grad_weights: [{ types: ["update"] }],
  max_pool2d_grad: [{ types: ["activation_grad"], when: isOfPooled }],
  sample_norm: [{ types: ["activation"], when: isOne }],
  sample_norm_grad_input: [{ types: ["activation_grad"], when: isOne }],
  sample_norm_grad_weights: [{ types: ["update"] }],
  batch_norm: [{ types: ["activation"], when: isOne }],
  batch_norm_grad_scale: [{ types: ["activation_grad"], when: isOne }],
  batch_norm_grad_input: [{ types: ["activation_grad"], when: isOne }],
  batch_norm_grad_weights: [{ types: ["update"] }],
  avg_pool2d_grad: [{ types: ["activation_grad"], when: isOne }],
  upsample2d_grad: [{ types: ["activation_grad"], when: isOne }],
  reshape: [{ types: ["activation_grad"], when: isOne }],
  shift2d: [{ types: ["activation_grad"], when: isOne }],
  slice_channels: [{ types: ["activation_grad"], when: isOne }],
  dropout: [{ types: ["activation_grad"], when: isOne }],
  multiply: [{ types: ["activation"], when: isOne }, { types: ["activation_grad"], when: isOne }],
  add: [{ types: ["activation"], when: isOne }, { types: ["activation_grad"], when: isOne }],
};

/** A gradient that passes to several activations belongs to none of them. @param {Graph} _graph @param {Op[]} readers */
function isOne(_graph, readers) {
  return readers.length === 1;
}

/** The kernel has read what was pooled, and nothing else that a slope could be computed from. @param {Graph} graph @param {Op[]} readers @param {Op} first */
function isOfPooled(graph, readers, first) {
  return isOne(graph, readers) && readers[0].inputs.y === first.inputs.x;
}

/** A fragment holds 4 columns of a row: enough for a loss that treats each output alone, or for up to 4 outputs.
 * @param {Graph} graph @param {Op[]} readers */
function seesWholeRows(graph, readers) {
  const loss = readers.find((op) => op.type === "loss");
  if (!loss) return false;
  const columns = size(graph.tensor(loss.inputs.z).shape);
  return columns <= 4 || (losses[loss.attrs.fn].pointwise && loss.attrs.labels === "values");
}

/**
 * @param {Graph} graph
 * @param {Set<string>} keep tensors that must be stored although no op reads them, such as predictions
 * @returns {Group[]} in an order of execution
 */
export function fuse(graph, keep) {
  /** @type {Set<Op>} */
  const taken = new Set();
  const allReaders = readersOf(graph.ops);
  const groups = [];
  for (const first of graph.ops) {
    if (taken.has(first)) continue;
    const ops = [first];
    taken.add(first);
    // The loss's companions read what it reads, which is stored, so that others may too; everybody else's epilogue reads what the loops make.
    const stored = first.type === "loss";
    let link = stored ? first.inputs.z : Object.values(first.outputs)[0];
    for (const { types, when } of epilogues[first.type] ?? []) {
      const readers = (allReaders.get(link) ?? []).filter((op) => !taken.has(op) && (!stored || types.includes(op.type)));
      const fits = readers.length > 0 && !keep.has(link) && readers.every((op) => types.includes(op.type));
      if (!fits || (when && !when(graph, readers, first))) continue;
      for (const op of readers) taken.add(op);
      ops.push(...readers);
      link = Object.values(readers[readers.length - 1].outputs)[0];
    }
    groups.push(ops);
  }
  return groups.map((ops) => describe(graph, ops, allReaders, keep));
}

/** @param {Graph} graph @param {Op[]} ops @param {Map<string, Op[]>} readers of each tensor @param {Set<string>} keep @returns {Group} */
function describe(graph, ops, readers, keep) {
  const made = new Set(ops.flatMap((op) => Object.values(op.outputs)));
  const readOutside = (/** @type {string} */ name) => readers.get(name)?.some((op) => !ops.includes(op));
  const persistent = (/** @type {string} */ name) => ["parameter", "state", "buffer", "accumulator", "rows"].includes(graph.tensor(name).kind);
  /** @type {Record<string, string>} */
  const inputs = {};
  /** @type {Record<string, string>} */
  const outputs = {};
  for (const op of ops) {
    for (const [key, name] of Object.entries(op.inputs)) {
      if ((!made.has(name) || persistent(name)) && !Object.values(inputs).includes(name)) inputs[key in inputs ? `${op.type}.${key}` : key] = name;
    }
    for (const [key, name] of Object.entries(op.outputs)) {
      if (keep.has(name) || persistent(name) || readOutside(name)) outputs[key] = name;
    }
  }
  return { kernel: ops[0].type, ops, recomputed: [], inputs, outputs };
}
