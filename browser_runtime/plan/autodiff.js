// Reverse-mode differentiation on the graph: appends the backward pass and the parameter updates to a forward graph.
import { backward } from "../nn/ops/index.js";
import { optimizers, penalties } from "../nn/optimizers.js";

/** @import { Graph, Training } from "../nn/graph.js" */

/** What the gradient is multiplied with, and its norm, where that limits it or is measured. */
export const GRADIENT_NORM = "gradient.norm";

/**
 * Appends `loss_grad`, the backward ops in reverse order, and one `update` a parameter, right behind its gradient; behind all of them where the
 * norm of the whole gradient is limited or measured, or where gradients of several batches are added up first.
 * A tensor that is read several times gets a gradient from each reader; they are added before the op that made it is differentiated.
 * What only frozen parameters would need is left out.
 * @param {Graph} graph a forward graph ending in `loss`; changed in place
 * @param {any} spec its optimizer, how gradients are limited, and whether their norm is wanted
 */
export function differentiate(graph, { optimizer, train, telemetry }) {
  const forward = [...graph.ops];
  const needed = reachesParameter(graph);
  const loss = forward[forward.length - 1];
  if (loss.type !== "loss") throw new Error("the last op must be the loss");
  // Statistics have no gradient of their own: what normalizes by them has the whole.
  const readers = forward.filter((op) => op === loss || backward[op.type]);
  /** How often each tensor is read. @type {Map<string, number>} */
  const uses = new Map();
  for (const name of readers.flatMap((op) => Object.values(op.inputs))) uses.set(name, (uses.get(name) ?? 0) + 1);

  /** Gradients that a tensor's readers contributed. @type {Map<string, string[]>} */
  const parts = new Map();
  const pass = (/** @type {string} */ name, /** @type {string} */ gradient) => {
    if (needed.has(name)) parts.set(name, [...(parts.get(name) ?? []), gradient]);
  };
  const create = (/** @type {string} */ of, /** @type {string} */ name) => {
    const { shape, batched, bias } = graph.tensor(of);
    return graph.add({ name, kind: "gradient", shape, batched, bias });
  };
  const want = (/** @type {string} */ name) => {
    if (!needed.has(name)) return null;
    const part = create(name, uses.get(name) === 1 ? `d(${name})` : `d(${name}).${(parts.get(name)?.length ?? 0) + 1}`);
    pass(name, part);
    return part;
  };
  /** All readers have been differentiated: their sum. @param {string} name @returns {string|undefined} */
  const gradientOf = (name) => {
    const [first, ...others] = parts.get(name) ?? [];
    return others.reduce((a, b, i) => {
      const y = create(name, i === others.length - 1 ? `d(${name})` : `d(${name}).sum${i + 1}`);
      graph.op("add", { a, b }, { y });
      return y;
    }, first);
  };

  /** Gradients that wait for the norm of all, or for those of other batches. @type {{w: string, dw: string}[]} */
  const waiting = [];
  const clip = train.clip ?? null;
  const normed = clip?.global_norm || telemetry?.gradient_norm;

  const dz = want(loss.inputs.z);
  if (dz) graph.op("loss_grad", { ...loss.inputs }, { dz }, loss.attrs);
  for (const op of forward.slice(0, -1).reverse()) {
    const gradient = needed.has(op.outputs.y) && gradientOf(op.outputs.y);
    if (!gradient) continue;
    backward[op.type](graph, op, gradient, { want, pass });
    const parameter = op.inputs.w;
    const dw = parameter && gradientOf(parameter);
    if (dw && train.accumulate_steps > 1) waiting.push({ w: parameter, dw: appendSum(graph, parameter, dw) });
    else if (dw && normed) waiting.push({ w: parameter, dw });
    else if (dw) appendUpdate(graph, { w: parameter, dw }, { optimizer, clip });
  }
  if (normed) {
    const norm = graph.add({ name: GRADIENT_NORM, kind: "statistics", shape: [2], batched: false });
    graph.op("grad_norm", Object.fromEntries(waiting.map(({ dw }, i) => [`dw${i + 1}`, dw])), { norm }, { clip });
  }
  const factor = clip?.global_norm ? { factor: GRADIENT_NORM } : {};
  for (const { w, dw } of waiting) appendUpdate(graph, { w, dw, ...factor }, { optimizer, clip });
}

/** The gradient of all batches of a step so far. @param {Graph} graph @param {string} w @param {string} dw @returns {string} */
function appendSum(graph, w, dw) {
  const { shape, bias } = graph.tensor(w);
  const sum = graph.add({ name: `${w}.gradient`, kind: "accumulator", shape, batched: false, bias });
  graph.op("accumulate", { dw, sum }, { sum });
  return sum;
}

/** @param {Graph} graph @param {{w: string, dw: string, factor?: string}} inputs @param {{optimizer: any, clip: any}} how */
function appendUpdate(graph, { w, dw, ...factor }, { optimizer, clip }) {
  const { shape, bias, training } = graph.tensor(w);
  const { multiplier, decay } = /** @type {Training} */ (training);
  const { l1, l2, decay: rate } = penalties(optimizer);
  /** @type {Record<string, string>} */
  const states = {};
  for (const state of optimizers[optimizer.type].states(optimizer)) {
    states[state] = graph.add({ name: `${w}.${state}`, kind: "state", shape, batched: false, bias });
  }
  // Parameters and states are updated in place as far as the graph goes; the backend ping-pongs.
  graph.op("update", { w, dw, ...states, ...factor }, { w, ...states }, {
    optimizer, clip, multiplier, decay, rule: optimizers[optimizer.type].rule(optimizer), penalised: decay && l1 + l2 > 0, shrinks: decay && rate > 0,
  });
}

/** The tensors whose gradient leads to a parameter that is trained. @param {Graph} graph */
function reachesParameter(graph) {
  const needed = new Set([...graph.tensors.values()].filter((t) => t.kind === "parameter" && t.training).map((t) => t.name));
  for (const op of graph.ops) {
    if (Object.values(op.inputs).some((name) => needed.has(name))) Object.values(op.outputs).forEach((name) => needed.add(name));
  }
  return needed;
}
