// Activations: of single elements, and softmax over the channels of a pixel.
import { activations } from "../activations.js";

/** @type {Record<string, import("./index.js").Backward>} */
export const backward = {
  activation(graph, op, gradient, { want }) {
    const dx = want(op.inputs.x);
    /** @type {Record<string, string>} */
    const kept = activations[op.attrs.fn].gradFrom === "output" ? { y: op.outputs.y } : { x: op.inputs.x };
    if (dx) graph.op("activation_grad", { dy: gradient, ...kept }, { dx }, { fn: op.attrs.fn });
  },

  softmax_channels(graph, op, gradient, { want }) {
    const dx = want(op.inputs.x);
    if (dx) graph.op("softmax_channels_grad", { dy: gradient, y: op.outputs.y }, { dx });
  },
};
