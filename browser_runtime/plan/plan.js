// The plan: what a training run computes, phase by phase, over logical tensors. Pure data, the same for all backends but for the convolutions' algorithms.
import { optimizers } from "../nn/optimizers.js";
import { asksFor } from "../nn/metrics.js";
import { arrayOf, ROW_WEIGHT, shapesOf } from "../nn/inputs.js";
import { appendAccuracy, appendLoss, buildModel } from "../nn/model.js";
import { differentiate, GRADIENT_NORM } from "./autodiff.js";
import { fuse } from "./fuse.js";
import { recompute } from "./recompute.js";

/** @import { Graph, Tensor } from "../nn/graph.js" */
/** @import { Buffer, Parameter } from "../nn/model.js" */
/** @import { Group } from "./fuse.js" */

/**
 * One phase: `train` makes a step, `evaluate` losses and metrics, `predict` outputs.
 * @typedef {object} Phase
 * @property {Map<string, Tensor>} tensors
 * @property {Group[]} groups
 * @property {Map<string, import("./recompute.js").Computed>} computed tensors that are not stored: their readers compute them
 * @property {Map<string, {first: number, last: number}>} lifetimes for each tensor that is neither persistent nor fed: the
 *   groups that make and last read it
 */

/**
 * @typedef {object} Plan
 * @property {Parameter[]} parameters
 * @property {string[]} states the optimizer's state tensors kept beside each parameter
 * @property {Buffer[]} buffers what steps keep and do not train
 * @property {number} leastRows that a batch must have
 * @property {Map<string, number>} lookups of each input tensor whose numbers are looked up: how many there are to look up at least
 * @property {number[]} outputShape @property {string} output
 * @property {Record<string, number[]>} fed what comes with the data, and the shape of a row of it as held: inputs, target, and weights of rows where there are some
 * @property {({layer: string} & import("../nn/model.js").Choice)[]} convolutions which algorithm each takes and what both would cost; none where nobody chose
 * @property {{train: Phase, evaluate: Phase, predict: Phase}} phases
 */

/**
 * @param {any} spec a job spec, validated, with its defaults filled in
 * @param {{labels: "index"|"values", weighted?: boolean}} data whether targets are class numbers or a value for each output; whether rows have weights
 * @param {import("../nn/model.js").Choose} [choose] the convolutions' algorithms
 * @returns {Plan}
 */
export function buildPlan(spec, data, choose) {
  const { labels, weighted = false } = data;
  const training = buildModel(spec, { training: true, choose });
  appendLoss(training, spec, data);
  differentiate(training.graph, spec);

  const evaluation = buildModel(spec, { training: false, choose });
  appendLoss(evaluation, spec, data);
  if (asksFor(spec, "accuracy")) appendAccuracy(evaluation, spec, labels);

  const prediction = buildModel(spec, { training: false, choose });
  return {
    parameters: training.parameters,
    states: optimizers[spec.optimizer.type].states(spec.optimizer),
    buffers: training.buffers,
    leastRows: training.leastRows,
    convolutions: training.convolutions,
    lookups: training.lookups,
    outputShape: training.outputShape,
    fed: Object.fromEntries([...Object.keys(shapesOf(spec.model.input)).map(arrayOf), "target", ...(weighted ? [ROW_WEIGHT] : [])].map((name) => [name, training.graph.tensor(name).shape])),
    output: prediction.output,
    phases: {
      // The telemetry reads the norm, whether or not it limits anything.
      train: phase(training.graph, training.graph.tensors.has(GRADIENT_NORM) ? [GRADIENT_NORM] : []),
      evaluate: phase(evaluation.graph, []),
      predict: phase(prediction.graph, [prediction.output]),
    },
  };
}

/** @param {Graph} graph @param {string[]} keep @returns {Phase} */
function phase(graph, keep) {
  const { groups, computed } = recompute(graph, fuse(graph, new Set(keep)), new Set(keep));
  const lifetimes = new Map();
  groups.forEach((group, i) => {
    for (const name of [...Object.values(group.outputs), ...Object.values(group.inputs)]) {
      if (!["activation", "statistics", "gradient", "rows"].includes(graph.tensor(name).kind)) continue;
      const life = lifetimes.get(name) ?? { first: i, last: i };
      life.last = keep.includes(name) ? groups.length : i;
      lifetimes.set(name, life);
    }
  });
  return { tensors: graph.tensors, groups, computed, lifetimes };
}
