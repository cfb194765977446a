// Embeddings.
import { gradientInParts, sharedLines } from "./gradient_parts.js";

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
    const { inputs, outputs } = group.ops[0];
    return gradientInParts(lowering, group, {
      kernel: "embedding_grad_weights",
      gradient: outputs.dw,
      share: sharedLines((lowering.batchRows / 4) * lowering.layout(inputs.x).texelsPerRow, 1),
      defines: {},
      reads: [lowering.read("X", inputs.x), lowering.read("DY", inputs.dy)],
    });
  },
};
