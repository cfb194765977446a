// Reverse-mode differentiation on the graph: appends the backward pass and the parameter updates to a forward graph.
import { backward, optimizers } from "../nn/ops.js";

/** @import { Graph } from "../nn/graph.js" */

/**
 * Appends `loss_grad`, the backward ops in reverse order, and one `update` a parameter, right behind its gradient.
 * @param {Graph} graph a forward graph ending in `loss`; changed in place
 * @param {any} optimizer the spec's optimizer
 */
export function differentiate(graph, optimizer) {
  const forward = [...graph.ops];
  const needed = reachesParameter(graph);
  const loss = forward[forward.length - 1];
  if (loss.type !== "loss") throw new Error("the last op must be the loss");

  /** @type {Map<string, string>} */
  const gradients = new Map();
  const want = (/** @type {string} */ name) => {
    if (!needed.has(name)) return null;
    if (gradients.has(name)) throw new Error(`${name} is used twice: sums of gradients are not supported yet`);
    const { shape, batched, bias } = graph.tensor(name);
    gradients.set(name, graph.add({ name: `d(${name})`, kind: "gradient", shape, batched, bias }));
    return gradients.get(name) ?? null;
  };

  const dz = want(loss.inputs.z);
  if (dz) graph.op("loss_grad", { ...loss.inputs }, { dz }, loss.attrs);
  for (const op of forward.slice(0, -1).reverse()) {
    const gradient = gradients.get(op.outputs.y);
    if (!gradient) continue;
    backward[op.type](graph, op, gradient, want);
    const parameter = op.inputs.w;
    const dw = parameter && gradients.get(parameter);
    if (dw) appendUpdate(graph, parameter, dw, optimizer);
  }
}

/** @param {Graph} graph @param {string} w @param {string} dw @param {any} optimizer */
function appendUpdate(graph, w, dw, optimizer) {
  const { shape, bias } = graph.tensor(w);
  /** @type {Record<string, string>} */
  const states = {};
  for (const state of optimizers[optimizer.type].states(optimizer)) {
    states[state] = graph.add({ name: `${w}.${state}`, kind: "state", shape, batched: false, bias });
  }
  // Parameters and states are updated in place as far as the graph goes; the backend ping-pongs.
  graph.op("update", { w, dw, ...states }, { w, ...states }, { optimizer });
}

/** The tensors whose gradient leads to a parameter. @param {Graph} graph */
function reachesParameter(graph) {
  const needed = new Set([...graph.tensors.values()].filter((t) => t.kind === "parameter").map((t) => t.name));
  for (const op of graph.ops) {
    if (Object.values(op.inputs).some((name) => needed.has(name))) Object.values(op.outputs).forEach((name) => needed.add(name));
  }
  return needed;
}
