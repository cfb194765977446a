// Matrix products of dense layers.
import { arrange } from "../arranging.js";
import { COMPUTED_TEXELS } from "../computed_operands.js";
import { samplesFor, texelsFor } from "../fragment_rows.js";
import { ceilDiv, groupsOfPart, ROW_ALIGNMENT, roundUp } from "../layout.js";
import { partsOf, storedGradient } from "../stored_gradients.js";
import { UNIFORM_TEXELS } from "../uniform_rows.js";
import { ACTIVATIONS, atOnce, BLOCK, find, MAX_TRIPS, ROW_LANES, slopeSource, texelsAtOnce } from "./common.js";
import { gatedInputGradient, gatedWeightGradient, makeGates } from "./gated.js";
import { gradientInParts } from "./gradient_parts.js";
import { lossParts } from "./loss.js";
import { updateParts } from "./update.js";

/** @import { KernelRead } from "../draw.js" */
/** @import { Layout } from "../layout.js" */
/** @import { Lowering } from "../lowering.js" */

/**
 * The loop of a weight gradient over the batch, or over a part of it. It takes as many samples at once as suit the device: one or whole row groups,
 * and few enough turns.
 * @param {Lowering} lowering @param {KernelRead[]} reads @param {Layout} domain of the gradient @param {number} [parts] of the batch
 */
function overSamples({ batchRows, wanted }, reads, { groups, texelsPerRow }, parts = 1) {
  const rows = roundUp(ceilDiv(batchRows, parts), ROW_ALIGNMENT);
  const suits = samplesFor(wanted.samples, groups * texelsPerRow * batchRows);
  const whole = suits === 1 ? 1 : Math.max(suits, ...reads.map(({ place }) => place.layout.layers));
  const samples = rows / whole <= MAX_TRIPS ? whole : ROW_ALIGNMENT;
  const many = rows > 4 * BLOCK && { MANY_SAMPLES: 1 };
  return { trips: rows / samples, defines: { ...many, ...atOnce("SAMPLE", samples) } };
}

/**
 * How many texels of an operand's rows are taken at once; what few columns read and compute takes registers enough.
 * @param {Lowering} lowering @param {KernelRead} operand @param {Layout} domain @param {number} [parts] of a row
 */
const textureTexels = ({ wanted }, { place, computed }, { layers }, parts = 1) =>
  texelsAtOnce(texelsFor(wanted.texels, layers), computed ? 1 : place.layout.texelsPerRow / parts);

/**
 * A product of the batch's rows with weights: one draw, or where they come from a uniform block one that arranges them and one for each row group.
 * @param {Lowering} lowering @param {string} kernel @param {{alias: string, name: string}} operand @param {string} result
 * @param {Omit<Parameters<Lowering["draw"]>[1], "domain">} parts `reads` without the operand
 */
function product(lowering, kernel, { alias, name }, result, { defines, reads, ...parts }) {
  const domain = lowering.layout(result);
  if (!lowering.uniform.has(result)) {
    const operand = lowering.read(alias, name);
    const split = domain.parts ?? 1;
    const shared = split > 1 && { SPLITS: split, SPLIT_GROUPS: groupsOfPart(domain) };
    return [lowering.draw(kernel, { ...parts, defines: { ...defines, ...textureTexels(lowering, operand, domain, split), ...shared }, reads: [operand, ...reads], domain })];
  }
  const layout = lowering.layout(name);
  const { draws, blocks } = arrange(lowering, name, result);
  const texels = texelsAtOnce(UNIFORM_TEXELS[kernel], layout.texelsPerRow);
  // Sums of a texel's four products each are a chain of as many additions as a block of products: without a second sum more fragments run at once.
  const block = layout.texelsPerRow <= 4 * BLOCK && { BLOCK: 4 * BLOCK };
  return [...draws, lowering.draw(kernel, { ...parts, defines: { ...defines, ...block, ...texels }, reads, domain, uniform: { ...blocks, alias, layout } })];
}

/**
 * What a draw needs to make a weight gradient: one, or where its inputs come from uniform blocks, which have been arranged already, one for each row group.
 * @param {Lowering} lowering @param {{x: string, dy: string}} operands @param {string} gradient @param {Layout} domain of the draw
 */
function overBatch(lowering, { x, dy }, gradient, domain) {
  const columns = lowering.columns.get(gradient);
  const reads = [...(columns ? [] : [lowering.read("X", x)]), lowering.read("DY", dy)];
  const { trips, defines } = overSamples(lowering, reads, domain);
  return {
    trips, reads,
    defines: { ...defines, ...(columns && { UNIFORM_SAMPLES: lowering.batchRows }) },
    uniform: columns && { ...columns, alias: "X", layout: lowering.layout(x) },
  };
}

/** @type {Record<string, import("./index.js").Kernel>} */
export const kernels = {
  affine(lowering, group) {
    const { x, w } = find(group, "affine").inputs;
    const activation = find(group, "activation");
    const { texelsPerRow } = lowering.layout(x);
    const defines = { BLOCK, ACTIVATION: ACTIVATIONS[activation?.attrs.fn ?? "linear"] };
    const trips = texelsPerRow + ROW_LANES;
    const weights = lowering.read("W", w);
    if (!find(group, "loss")) {
      const { y } = (activation ?? find(group, "affine")).outputs;
      const parts = { trips, defines, reads: [weights], writes: [lowering.write("Y", y)] };
      const operand = lowering.operands.get(group);
      if (!operand) return product(lowering, "affine", { alias: "X", name: x }, y, parts);
      const reads = [lowering.readComputed("X", x, operand.how), weights];
      const atOnce = texelsAtOnce(COMPUTED_TEXELS, texelsPerRow);
      return [lowering.draw("affine", { ...parts, defines: { ...defines, X_IS_RELU: 1, ...atOnce }, reads, domain: lowering.layout(y) })];
    }
    const operand = lowering.read("X", x);
    const domain = lowering.lossDomain(find(group, "loss").inputs.z);
    const loss = lossParts(lowering, group, domain);
    return [
      lowering.draw("affine", {
        trips,
        defines: { ...defines, ...textureTexels(lowering, operand, domain), ...loss.defines },
        reads: [operand, weights, ...loss.reads],
        writes: loss.writes,
        domain,
      }),
    ];
  },

  affine_grad_input(lowering, group) {
    const { dy, w } = find(group, "affine_grad_input").inputs;
    const grad = find(group, "activation_grad");
    const dx = grad ? grad.outputs.dx : find(group, "affine_grad_input").outputs.dx;
    if (lowering.isGated(dx)) return [makeGates(lowering, group)];
    if (lowering.isGated(dy)) return [gatedInputGradient(lowering, group)];
    return product(lowering, "affine_grad_input", { alias: "DY", name: dy }, dx, {
      trips: lowering.layout(dy).texelsPerRow,
      defines: { BLOCK, GRAD_ACTIVATION: ACTIVATIONS[grad?.attrs.fn ?? "linear"] },
      reads: [lowering.read("W", w), ...(grad ? [lowering.read("Y", slopeSource(grad))] : [])],
      writes: [lowering.write("DX", dx)],
    });
  },

  affine_grad_weights(lowering, group) {
    const { inputs: { x, dy }, outputs } = find(group, "affine_grad_weights");
    if (lowering.isGated(dy)) return gatedWeightGradient(lowering, group);
    const reads = [lowering.read("X", x), lowering.read("DY", dy)];
    const parts = partsOf(lowering, group);
    if (parts > 1) {
      const share = (/** @type {Layout} */ one) => ({ parts, ...overSamples(lowering, reads, one, parts) });
      return gradientInParts(lowering, group, { kernel: "affine_grad_weights", gradient: outputs.dw, share, reads });
    }
    if (!find(group, "update")) {
      const domain = lowering.layout(outputs.dw);
      return [lowering.draw("affine_grad_weights", { ...overSamples(lowering, reads, domain), reads, writes: [lowering.write("DW", outputs.dw)], domain })];
    }
    const { update, states, gradient } = updateParts(lowering, group);
    const { domain } = update;
    const sums = overBatch(lowering, { x, dy }, gradient, storedGradient(lowering, group) ? lowering.layout(gradient) : domain);
    if (!storedGradient(lowering, group)) {
      return [lowering.draw("affine_grad_weights", { ...update, ...sums, defines: { ...update.defines, ...sums.defines }, reads: [...sums.reads, ...states] })];
    }
    return [
      lowering.draw("affine_grad_weights", { ...sums, writes: [lowering.write("DW", gradient)], domain: lowering.layout(gradient) }),
      lowering.draw("update", { ...update, trips: 8, defines: { ...update.defines, SPLITS: 1, DW_SPLIT_ROWS: 0 }, reads: [lowering.read("DW", gradient), ...states] }),
    ];
  },
};
