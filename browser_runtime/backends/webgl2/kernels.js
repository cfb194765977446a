// Kernels: for each kernel family of the plan, the draws that compute one of its groups. Pure data, no GL.
import { matrixOf, ROW_ALIGNMENT, rowsPerFragment } from "./layout.js";

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

/** Fragments that a draw should have: what a GPU holds at once. */
const FRAGMENTS = 8192;

/** Loop trips of one fragment; llvmpipe stops silently at 65,535 for all loops of a shader together. */
export const MAX_TRIPS = 32_768;

/** Trips of the loops over the rows and lanes of a fragment in an epilogue. */
const ROW_LANES = 8 * 4;

const area = (/** @type {number[]} */ [height, width]) => height * width;

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
    const trips = lowering.layout(x).texelsPerRow + ROW_LANES;
    if (!find(group, "loss")) {
      const y = (activation ?? find(group, "affine")).outputs.y;
      return [lowering.draw("affine", { trips, defines, reads, writes: [lowering.write("Y", y)], domain: lowering.layout(y) })];
    }
    const domain = lowering.lossDomain(find(group, "loss").inputs.z);
    const loss = lossParts(lowering, group, domain);
    return [
      lowering.draw("affine", {
        trips,
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
    // A row's texels twice, and each lane of the second time.
    const { texelsPerRow } = logits.place.layout;
    const trips = 6 * texelsPerRow;
    const grad = find(group, "loss_grad");
    if (grad && texelsPerRow <= SHORT_ROW) {
      const domain = lowering.lossDomain(z);
      const { defines, reads, writes } = lossParts(lowering, group, domain);
      return [lowering.draw("softmax_cross_entropy", { trips: 4 * trips, defines: { BLOCK, ...defines }, reads: [logits, ...reads], writes, domain })];
    }
    const rows = lowering.scratch(`statistics of ${z}`, lowering.measure({ rows: lowering.batchRows, columns: 4, layers: 1 }));
    const { defines, reads, writes } = lossParts(lowering, group, rows.layout);
    const [dz, rest] = grad ? [writes[0], writes.slice(1)] : [null, writes];
    const statistics = lowering.draw("softmax_rows", {
      trips,
      defines: { BLOCK, ...defines },
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

  affine_grad_input(lowering, group) {
    const { dy, w } = find(group, "affine_grad_input").inputs;
    const grad = find(group, "activation_grad");
    const dx = grad ? grad.outputs.dx : find(group, "affine_grad_input").outputs.dx;
    return [
      lowering.draw("affine_grad_input", {
        trips: lowering.layout(dy).texelsPerRow,
        defines: { BLOCK, GRAD_ACTIVATION: ACTIVATIONS[grad?.attrs.fn ?? "linear"] },
        reads: [lowering.read("DY", dy), lowering.read("W", w), ...(grad ? [lowering.read("Y", grad.inputs.y)] : [])],
        writes: [lowering.write("DX", dx)],
        domain: lowering.layout(dx),
      }),
    ];
  },

  conv2d(lowering, group) {
    const conv = find(group, "conv2d");
    const activation = find(group, "activation");
    const y = (activation ?? conv).outputs.y;
    return [
      lowering.draw("conv2d", {
        trips: area(conv.attrs.taps) * lowering.layout(conv.inputs.x).texelsPerPixel,
        defines: { ...windowDefines(conv.attrs), ACTIVATION: ACTIVATIONS[activation?.attrs.fn ?? "linear"] },
        reads: [lowering.read("X", conv.inputs.x), lowering.read("W", conv.inputs.w)],
        writes: [lowering.write("Y", y)],
        domain: lowering.layout(y),
      }),
    ];
  },

  conv2d_grad_input(lowering, group) {
    const conv = find(group, "conv2d_grad_input");
    const grad = find(group, "activation_grad");
    const dx = (grad ?? conv).outputs.dx;
    return [
      lowering.draw("conv2d_grad_input", {
        trips: area(conv.attrs.taps) * lowering.layout(conv.inputs.dy).texelsPerPixel,
        defines: { ...windowDefines(conv.attrs), GRAD_ACTIVATION: ACTIVATIONS[grad?.attrs.fn ?? "linear"] },
        reads: [
          lowering.read("DY", conv.inputs.dy), lowering.read("W", conv.inputs.w), ...(grad ? [lowering.read("Y", grad.inputs.y)] : []),
        ],
        writes: [lowering.write("DX", dx)],
        domain: lowering.layout(dx),
      }),
    ];
  },

  conv2d_grad_weights(lowering, group) {
    const { inputs, attrs } = find(group, "conv2d_grad_weights");
    const { update, states, gradient } = updateParts(lowering, group);
    const layers = rowsPerFragment(4, lowering.maxDrawBuffers);
    const { shape, bias } = lowering.tensor(gradient);
    const one = lowering.measure({ ...matrixOf(shape), layers, bias });
    // Enough fragments to fill a device or to keep their loops short, and no less than a line of 4 samples each.
    const lines = (lowering.batchRows / 4) * attrs.output[0];
    const tripsOfLine = 1 + attrs.output[1];
    const least = Math.max(Math.ceil(FRAGMENTS / one.texels), Math.ceil(lines / Math.max(1, Math.floor(MAX_TRIPS / tripsOfLine))));
    const splits = Math.max(1, Math.min(lines, least));
    const stored = lowering.scratch(gradient, { ...one, groups: one.groups * splits, texels: one.texels * splits }).layout;
    return [
      lowering.draw("conv2d_grad_weights", {
        trips: Math.ceil(lines / splits) * tripsOfLine,
        defines: { ...windowDefines(attrs), SPLITS: splits, WEIGHT_GROUPS: one.groups },
        reads: [lowering.read("X", inputs.x), lowering.read("DY", inputs.dy)],
        writes: [lowering.write("DW", gradient)],
        domain: stored,
      }),
      lowering.draw("update", { ...update, trips: 8 * splits, defines: { ...update.defines, SPLITS: splits, DW_SPLIT_ROWS: one.groups * layers }, reads: [lowering.read("DW", gradient), ...states] }),
    ];
  },

  max_pool2d(lowering, { ops: [{ inputs, outputs, attrs }] }) {
    const domain = lowering.layout(outputs.y);
    return [
      lowering.draw("max_pool2d", { trips: area(attrs.taps), defines: windowDefines(attrs), reads: [lowering.read("X", inputs.x)], writes: [lowering.write("Y", outputs.y)], domain }),
    ];
  },

  max_pool2d_grad(lowering, group) {
    const pool = find(group, "max_pool2d_grad");
    const grad = find(group, "activation_grad");
    const dx = (grad ?? pool).outputs.dx;
    const domain = lowering.layout(dx);
    const { taps, stride } = pool.attrs;
    return [
      lowering.draw("max_pool2d_grad", {
        // For each of its rows, all taps, and the earlier elements of each window that it stands in.
        trips: domain.layers * area(taps) * (1 + Math.ceil(taps[0] / stride[0]) * Math.ceil(taps[1] / stride[1])),
        defines: { ...windowDefines(pool.attrs), GRAD_ACTIVATION: ACTIVATIONS[grad?.attrs.fn ?? "linear"] },
        reads: [lowering.read("X", pool.inputs.x), lowering.read("Y", pool.inputs.y), lowering.read("DY", pool.inputs.dy)],
        writes: [lowering.write("DX", dx)],
        domain,
      }),
    ];
  },

  affine_grad_weights(lowering, group) {
    const { x, dy } = find(group, "affine_grad_weights").inputs;
    const { update, states, gradient } = updateParts(lowering, group);
    const { domain } = update;
    const reads = [lowering.read("X", x), lowering.read("DY", dy)];
    const trips = lowering.batchRows / ROW_ALIGNMENT;

    // Fetches a sample and column texel: each fragment reads one texel of DY and one of X for each 4 of its rows.
    const fetches = (/** @type {number} */ rows) => (domain.rows / rows) * (1 + Math.ceil(rows / 4));
    const wide = rowsPerFragment(lowering.wanted.gradient, lowering.maxDrawBuffers);
    const saved = (fetches(domain.layers) - fetches(wide)) * domain.texelsPerRow * lowering.batchRows;
    if (saved < FETCHES_WORTH_A_DRAW || states.length === 1) return [lowering.draw("affine_grad_weights", { ...update, trips, reads: [...reads, ...states] })];
    const { shape, bias } = lowering.tensor(gradient);
    const stored = lowering.scratch(gradient, lowering.measure({ ...matrixOf(shape), layers: wide, bias })).layout;
    return [
      lowering.draw("affine_grad_weights", { trips, defines: {}, reads, writes: [lowering.write("DW", gradient)], domain: stored }),
      lowering.draw("update", { ...update, trips: 8, defines: { ...update.defines, SPLITS: 1, DW_SPLIT_ROWS: 0 }, reads: [lowering.read("DW", gradient), ...states] }),
    ];
  },
};

/** What a draw that ends in the update needs: all but the gradient. `states` begins with the parameter. @param {Lowering} lowering @param {any} group */
function updateParts(lowering, group) {
  const { inputs, attrs } = find(group, "update");
  const { dw, ...kept } = inputs;
  const names = Object.keys(kept);
  return {
    gradient: dw,
    states: names.map((key) => lowering.read(key.toUpperCase(), kept[key])),
    update: {
      defines: { OPTIMIZER: optimizerName(attrs.optimizer) },
      writes: names.map((key) => lowering.write(key.toUpperCase(), kept[key])),
      domain: lowering.layout(kept.w),
    },
  };
}

/** lib/window.glsl's. @param {any} attrs */
function windowDefines({ taps, stride, dilation, padding, input, output }) {
  const pair = (/** @type {number[]} */ [y, x]) => `ivec2(${y}, ${x})`;
  return { WINDOW: pair(taps), STRIDE: pair(stride), DILATION: pair(dilation), PADDING: pair(padding), INPUT: pair(input), OUTPUT: pair(output) };
}

/** @param {any} optimizer */
function optimizerName(optimizer) {
  if (optimizer.type === "adam") return "ADAM";
  return optimizer.momentum > 0 ? "MOMENTUM" : "SGD";
}
