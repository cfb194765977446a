// Losses, their gradients and the accuracy: alone, or as the end of a draw that makes the logits.
import { samplesFor } from "../fragment_rows.js";
import { ACTIVATIONS, atOnce, BLOCK, exactFloat, find, ROW_LANES } from "./common.js";

/** @import { Layout } from "../layout.js" */
/** @import { Lowering } from "../lowering.js" */

/** @type {Record<string, string>} */
const LOSSES = { bce: "BCE", mse: "MSE", softmax_cross_entropy: "SOFTMAX_CROSS_ENTROPY", mae: "MAE", huber: "HUBER", hinge: "HINGE" };
/** @type {Record<string, string>} */
const LABELS = { index: "LABELS_INDEX", values: "LABELS_VALUES" };

/** Texels of a row that its fragment fetches at once, at most: more leave the registers. */
const TEXELS_AT_ONCE = 8;

/** Texels of a row up to which each column's fragment reads the whole row, rather than a draw of its own once. */
const SHORT_ROW = 8;

/** Whether a group makes the loss of a softmax and its gradient in one draw. @param {import("../../../plan/fuse.js").Group} group @param {Layout} logits */
export const isOneDraw = (group, { texelsPerRow }) =>
  group.kernel === "loss" && find(group, "loss").attrs.fn === "softmax_cross_entropy" && find(group, "loss_grad") !== undefined && texelsPerRow <= SHORT_ROW;

/** What a group's loss adds to a kernel. @param {Lowering} lowering @param {any} group @param {Layout} domain */
export function lossParts(lowering, group, domain) {
  const loss = find(group, "loss");
  const grad = find(group, "loss_grad");
  const accuracy = find(group, "accuracy");
  const gradActivation = find(group, "activation_grad");
  const dz = gradActivation ? gradActivation.outputs.dx : grad?.outputs.dz;
  return {
    defines: {
      LOSS: LOSSES[loss.attrs.fn],
      LABELS: LABELS[loss.attrs.labels],
      GRAD_ACTIVATION: ACTIVATIONS[gradActivation?.attrs.fn ?? "linear"],
      ...(loss.attrs.fn === "huber" && { DELTA: exactFloat(loss.attrs.delta) }),
      ...(loss.attrs.smoothing > 0 && { SMOOTHING: exactFloat(loss.attrs.smoothing) }),
      ...(loss.inputs.weights && { WEIGHTED: 1 }),
      ...(loss.inputs.rows && { ROW_WEIGHTS: 1 }),
      ...(grad && { WITH_GRAD: 1 }),
      ...(accuracy && { WITH_ACCURACY: 1 }),
    },
    reads: [lowering.read("T", loss.inputs.target), ...(loss.inputs.weights ? [lowering.read("K", loss.inputs.weights)] : []), ...(loss.inputs.rows ? [lowering.read("R", loss.inputs.rows)] : [])],
    writes: [
      ...(dz ? [lowering.write("DZ", dz)] : []),
      lowering.writeRows("L", loss.outputs.loss, domain),
      ...(accuracy ? [lowering.writeRows("C", accuracy.outputs.correct, domain)] : []),
    ],
    dz,
  };
}

/** @type {Record<string, import("./index.js").Kernel>} */
export const kernels = {
  loss(lowering, group) {
    const { z } = find(group, "loss").inputs;
    const logits = lowering.read("Z", z);
    if (find(group, "loss").attrs.fn !== "softmax_cross_entropy") {
      const domain = lowering.lossDomain(z);
      const { defines, reads, writes } = lossParts(lowering, group, domain);
      return [lowering.draw("pointwise_loss", { trips: ROW_LANES, defines, reads: [logits, ...reads], writes, domain })];
    }
    // A row's texels twice, and each lane of the second time.
    const { texelsPerRow } = logits.place.layout;
    const trips = 6 * texelsPerRow;
    const grad = find(group, "loss_grad");
    if (isOneDraw(group, logits.place.layout)) {
      const domain = lowering.lossDomain(z);
      const { defines, reads, writes } = lossParts(lowering, group, domain);
      return [lowering.draw("softmax_cross_entropy", { trips: 4 * trips, defines: { BLOCK, ...defines }, reads: [logits, ...reads], writes, domain })];
    }
    const rows = lowering.scratch(`statistics of ${z}`, lowering.measure({ rows: lowering.batchRows, columns: 4, layers: 1 }));
    const { defines, reads, writes } = lossParts(lowering, group, rows.layout);
    const [dz, rest] = grad ? [writes[0], writes.slice(1)] : [null, writes];
    const statistics = lowering.draw("softmax_rows", {
      trips,
      defines: { BLOCK, ...atOnce("TEXEL", Math.min(TEXELS_AT_ONCE, samplesFor(lowering.wanted.samples, lowering.batchRows * texelsPerRow))), ...defines },
      reads: [logits, ...reads],
      writes: [...(dz ? [lowering.write("S", rows.name)] : []), ...rest],
      domain: rows.layout,
    });
    if (!dz) return [statistics];
    const { WITH_ACCURACY: _, ...plain } = defines;
    const gradient = lowering.draw("softmax_grad", {
      trips: ROW_LANES,
      defines: { BLOCK, ...plain },
      reads: [logits, ...reads, lowering.read("S", rows.name)],
      writes: [dz],
      domain: lowering.lossDomain(z),
    });
    return [statistics, gradient];
  },
};
