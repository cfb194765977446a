// Kernels: for each kernel family of the plan, the draws that compute one of its groups. Pure data, no GL.
import { rowsPerFragment } from "./layout.js";

/** @import { Layout } from "./layout.js" */
/** @import { Lowering, Draw } from "./lower.js" */

/** @type {Record<string, string>} */
const ACTIVATIONS = { linear: "LINEAR", relu: "RELU", sigmoid: "SIGMOID", tanh: "TANH" };
/** @type {Record<string, string>} */
const LOSSES = { bce: "BCE", mse: "MSE", softmax_cross_entropy: "SOFTMAX_CROSS_ENTROPY" };
/** @type {Record<string, string>} */
const LABELS = { index: "LABELS_INDEX", values: "LABELS_VALUES" };

/** Values of the long sums are added in blocks of this many texels (256 numbers), then the blocks: see docs/numerics.md. */
const BLOCK = 64;

/**
 * A gradient is stored, and the update made in a draw of its own, where that saves more texel fetches than this: about what a draw costs,
 * 33 us at 0.5 G fetches/s on SwiftShader, 5 us at 21 G/s on an H200.
 */
const FETCHES_WORTH_A_DRAW = 100_000;

/** Texels of a row up to which each column's fragment reads the whole row, rather than a draw of its own once. */
const SHORT_ROW = 8;

/** @param {any} group @param {string} type @returns {any} */
const find = (group, type) => group.ops.find((/** @type {any} */ op) => op.type === type);

/** What a group's loss adds to a kernel. @param {Lowering} lowering @param {any} group @param {Layout} domain */
function lossParts(lowering, group, domain) {
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
      ...(grad && { WITH_GRAD: 1 }),
      ...(accuracy && { WITH_ACCURACY: 1 }),
    },
    reads: [lowering.read("T", loss.inputs.target)],
    writes: [
      ...(dz ? [lowering.write("DZ", dz)] : []),
      lowering.writeRows("L", loss.outputs.loss, domain),
      ...(accuracy ? [lowering.writeRows("C", accuracy.outputs.correct, domain)] : []),
    ],
    dz,
  };
}

/** @type {Record<string, (lowering: Lowering, group: any) => Draw[]>} */
export const kernels = {
  affine(lowering, group) {
    const { x, w } = find(group, "affine").inputs;
    const activation = find(group, "activation");
    const defines = { BLOCK, ACTIVATION: ACTIVATIONS[activation?.attrs.fn ?? "linear"] };
    const reads = [lowering.read("X", x), lowering.read("W", w)];
    if (!find(group, "loss")) {
      const y = (activation ?? find(group, "affine")).outputs.y;
      return [lowering.draw("affine", { defines, reads, writes: [lowering.write("Y", y)], domain: lowering.layout(y) })];
    }
    const domain = lowering.lossDomain(find(group, "loss").inputs.z);
    const loss = lossParts(lowering, group, domain);
    return [
      lowering.draw("affine", {
        defines: { ...defines, ...loss.defines },
        reads: [...reads, ...loss.reads],
        writes: loss.writes,
        domain,
      }),
    ];
  },

  loss(lowering, group) {
    const { z } = find(group, "loss").inputs;
    const logits = lowering.read("Z", z);
    const grad = find(group, "loss_grad");
    if (grad && logits.place.layout.texelsPerRow <= SHORT_ROW) {
      const domain = lowering.lossDomain(z);
      const { defines, reads, writes } = lossParts(lowering, group, domain);
      return [lowering.draw("softmax_cross_entropy", { defines: { BLOCK, ...defines }, reads: [logits, ...reads], writes, domain })];
    }
    const rows = lowering.scratch(`statistics of ${z}`, { rows: lowering.batchRows, columns: 4, layers: 1 });
    const { defines, reads, writes } = lossParts(lowering, group, rows.layout);
    const [dz, rest] = grad ? [writes[0], writes.slice(1)] : [null, writes];
    const statistics = lowering.draw("softmax_rows", {
      defines: { BLOCK, ...defines },
      reads: [logits, ...reads],
      writes: [...(dz ? [lowering.write("S", rows.name)] : []), ...rest],
      domain: rows.layout,
    });
    if (!dz) return [statistics];
    const { WITH_ACCURACY: _, ...plain } = defines;
    const gradient = lowering.draw("softmax_grad", {
      defines: { BLOCK, ...plain },
      reads: [logits, ...reads, lowering.read("S", rows.name)],
      writes: [dz],
      domain: lowering.lossDomain(z),
    });
    return [statistics, gradient];
  },

  affine_grad_input(lowering, group) {
    const { dy, w } = find(group, "affine_grad_input").inputs;
    const grad = find(group, "activation_grad");
    const dx = grad ? grad.outputs.dx : find(group, "affine_grad_input").outputs.dx;
    return [
      lowering.draw("affine_grad_input", {
        defines: { BLOCK, GRAD_ACTIVATION: ACTIVATIONS[grad?.attrs.fn ?? "linear"] },
        reads: [lowering.read("DY", dy), lowering.read("W", w), ...(grad ? [lowering.read("Y", grad.inputs.y)] : [])],
        writes: [lowering.write("DX", dx)],
        domain: lowering.layout(dx),
      }),
    ];
  },

  affine_grad_weights(lowering, group) {
    const { x, dy } = find(group, "affine_grad_weights").inputs;
    const update = find(group, "update");
    const { w, dw: gradient, ...states } = update.inputs;
    const names = Object.keys(states);
    const domain = lowering.layout(w);
    const optimizer = { OPTIMIZER: optimizerName(update.attrs.optimizer) };
    const stateReads = names.map((key) => lowering.read(key.toUpperCase(), states[key]));
    const writes = [lowering.write("W", w), ...names.map((key) => lowering.write(key.toUpperCase(), states[key]))];
    const reads = [lowering.read("X", x), lowering.read("DY", dy)];

    // Fetches a sample and column texel: each fragment reads one texel of DY and one of X for each 4 of its rows.
    const fetches = (/** @type {number} */ rows) => (domain.rows / rows) * (1 + Math.ceil(rows / 4));
    const wide = rowsPerFragment(lowering.wanted.gradient, lowering.maxDrawBuffers);
    const saved = (fetches(domain.layers) - fetches(wide)) * domain.texelsPerRow * lowering.batchRows;
    if (saved < FETCHES_WORTH_A_DRAW || names.length === 0) {
      return [
        lowering.draw("affine_grad_weights", {
          defines: optimizer,
          reads: [...reads, lowering.read("W", w), ...stateReads],
          writes,
          domain,
        }),
      ];
    }
    const { shape, bias } = lowering.phase.tensors.get(gradient) ?? { shape: [0, 0] };
    const stored = lowering.scratch(gradient, { rows: shape[0], columns: shape[1], layers: wide, bias }).layout;
    return [
      lowering.draw("affine_grad_weights", { defines: {}, reads, writes: [lowering.write("DW", gradient)], domain: stored }),
      lowering.draw("update", { defines: optimizer, reads: [lowering.read("DW", gradient), lowering.read("W", w), ...stateReads], writes, domain }),
    ];
  },
};

/** @param {any} optimizer */
function optimizerName(optimizer) {
  if (optimizer.type === "adam") return "ADAM";
  return optimizer.momentum > 0 ? "MOMENTUM" : "SGD";
}
