// Embeddings.
import { gradientInParts } from "./conv.js";

/** @type {Record<string, import("./index.js").Kernel>} */
export const kernels = {
  embedding(lowering, { ops: [{ inputs, outputs, attrs }] }) {
    return [
      lowering.draw("embedding", {
        trips: 0,
        defines: { VOCABULARY: attrs.vocabulary },
        reads: [lowering.read("X", inputs.x), lowering.read("W", inputs.w)],
        writes: [lowering.write("Y", outputs.y)],
        domain: lowering.layout(outputs.y),
      }),
    ];
  },

  embedding_grad_weights(lowering, group) {
    const { inputs } = group.ops[0];
    return gradientInParts(lowering, group, {
      kernel: "embedding_grad_weights",
      lines: (lowering.batchRows / 4) * lowering.layout(inputs.x).texelsPerRow,
      tripsOfLine: 1,
      defines: {},
      reads: [lowering.read("X", inputs.x), lowering.read("DY", inputs.dy)],
    });
  },
};
