// Normalization: statistics in one draw, or two where sums are long; then what they normalize.
import { ceilDiv } from "../layout.js";
import { activationOf, BLOCK, exactFloat, find, slopeSource } from "./common.js";
import { gradientInParts } from "./gradient_parts.js";

/** @import { Lowering } from "../lowering.js" */

/** Texels of a set, or pixels of 4 samples of a channel, that one fragment may sum alone; more are shared out. */
const ALONE = { set: 256, channel: 64 };
/** Parts of a sum at most: update, which adds those of a gradient, goes through them for each of 8 rows. */
const MAX_PARTS = 2048;

/**
 * How the sets of lib/sets.glsl are summed.
 * @param {any} attrs
 * @returns {{sets: number, parts: number, lanes: number, trips: number, defines: Record<string, string|number>}} parts of a set; `trips` of one sum over a part
 */
function setsOf({ pixels, channels, groups, pixelwise }) {
  const [own, sets] = [channels / groups, pixelwise ? pixels : groups];
  // A group that does not fill its texels may begin in one and end in another.
  const texels = own % 4 === 0 || groups === 1 ? ceilDiv(own, 4) : Math.floor((own + 2) / 4) + 1;
  const pixelsOfSet = pixelwise ? 1 : pixels;
  const texelsOfSet = pixelsOfSet * texels;
  // Trips through the lanes of a texel that sets share: lib/sets.glsl.
  const lanes = pixelwise || own % 4 === 0 || groups === 1 ? 0 : 4;
  const partPixels = texelsOfSet <= ALONE.set ? pixelsOfSet : Math.max(1, Math.ceil(Math.sqrt(texelsOfSet) / texels));
  const parts = ceilDiv(pixelsOfSet, partPixels);
  return {
    sets,
    parts,
    lanes,
    trips: partPixels * (1 + ceilDiv(texels, BLOCK) + texels),
    defines: {
      PIXELS: pixels, GROUPS: groups, GROUP_CHANNELS: own, VALUES: pixelsOfSet * own, PART_PIXELS: partPixels, PARTS: parts, BLOCK,
      ...(pixelwise && { PIXELWISE: 1 }),
    },
  };
}

/**
 * One draw over the sets, or one over their parts and one that merges them.
 * @param {Lowering} lowering @param {string} kernel @param {any} attrs
 * @param {{passes: number, defines?: Record<string, string|number>, reads: any[], alias: string, out: string}} parts `passes` over the elements
 */
function overSets(lowering, kernel, attrs, { passes, defines = {}, reads, alias, out }) {
  const { sets, parts, trips, defines: own } = setsOf(attrs);
  const domain = lowering.layout(out);
  const writes = [lowering.write(alias, out)];
  if (parts === 1) return [lowering.draw(kernel, { trips: passes * trips, defines: { ...own, ...defines }, reads, writes, domain })];
  const { batchRows: rows } = lowering;
  const partial = lowering.scratch(`parts of ${out}`, lowering.measure({ rows, columns: 2 * sets * parts, pixels: sets * parts, layers: domain.layers }));
  return [
    lowering.draw(kernel, {
      trips: passes * trips, defines: { ...own, ...defines, PARTIAL: 1 }, reads, writes: [lowering.write("P", partial.name)], domain: partial.layout,
    }),
    lowering.draw(kernel, { trips: passes * parts, defines: { ...own, ...defines, MERGE: 1 }, reads: [lowering.read("P", partial.name)], writes, domain }),
  ];
}

/** How sums over samples and pixels are shared out. @param {Lowering} lowering @param {any} attrs */
function spotsOf({ batchRows }, { pixels }) {
  const all = (batchRows / 4) * pixels;
  const spots = all <= ALONE.channel ? all : Math.max(16, Math.ceil(Math.sqrt(all)), ceilDiv(all, MAX_PARTS));
  return { spots, parts: ceilDiv(all, spots), trips: ceilDiv(spots, BLOCK) + spots };
}

/**
 * The gradient of gamma and beta in parts, and what takes it from there.
 * @param {Lowering} lowering @param {any} group @param {any} op @param {number} within trips for each pixel of 4 samples
 * @param {any[]} reads @param {Record<string, string|number>} defines
 */
function gradWeights(lowering, group, { attrs, outputs }, within, reads, defines) {
  const { spots, parts, trips } = spotsOf(lowering, attrs);
  return gradientInParts(lowering, group, {
    kernel: "norm_grad_weights",
    gradient: outputs.dw,
    share: () => ({ parts, trips: trips + spots * within }),
    defines: { PIXELS: attrs.pixels, SPOTS: spots, BLOCK, ...defines },
    reads,
  });
}

/** What both kinds of normalization write, and the activation or its gradient behind it. @param {Lowering} lowering @param {any} group */
function ending(lowering, group) {
  const activation = find(group, "activation");
  const grad = find(group, "activation_grad");
  const { y, dx } = { ...group.ops[0].outputs, ...(activation ?? grad)?.outputs };
  /** @type {Record<string, string>} */
  const defines = y ? { ACTIVATION: activationOf(activation) } : { GRAD_ACTIVATION: activationOf(grad) };
  return {
    defines,
    reads: grad ? [lowering.read("Y", slopeSource(grad))] : [],
    writes: [lowering.write(y ? "Y" : "DX", y ?? dx)],
    domain: lowering.layout(y ?? dx),
  };
}

/** Tensors by the names under which kernels read them. @param {Lowering} lowering @param {Record<string, string>} inputs @param {string[]} keys */
const readAll = (lowering, inputs, keys) => keys.map((key) => lowering.read(key.toUpperCase(), inputs[key]));

/** @type {Record<string, import("./index.js").Kernel>} */
export const kernels = {
  sample_norm_statistics(lowering, { ops: [{ inputs, outputs, attrs }] }) {
    return overSets(lowering, "sample_norm_statistics", attrs, {
      passes: 2, defines: { EPS: exactFloat(attrs.eps) }, reads: [lowering.read("X", inputs.x)], alias: "S", out: outputs.s,
    });
  },

  sample_norm(lowering, group) {
    const { inputs, attrs } = group.ops[0];
    const { defines, writes, domain } = ending(lowering, group);
    const { lanes, defines: sets } = setsOf(attrs);
    return [lowering.draw("sample_norm", { trips: lanes * domain.layers, defines: { ...sets, ...defines }, reads: readAll(lowering, inputs, ["x", "s", "w"]), writes, domain })];
  },

  sample_norm_grad_sums(lowering, { ops: [{ inputs, outputs, attrs }] }) {
    return overSets(lowering, "sample_norm_grad_sums", attrs, { passes: 1, reads: readAll(lowering, inputs, ["x", "s", "dy", "w"]), alias: "SUMS", out: outputs.sums });
  },

  sample_norm_grad_input(lowering, group) {
    const { inputs, attrs } = group.ops[0];
    const { defines, reads, writes, domain } = ending(lowering, group);
    const { lanes, defines: sets } = setsOf(attrs);
    return [
      lowering.draw("sample_norm_grad_input", {
        trips: 2 * lanes * domain.layers, defines: { ...sets, ...defines }, reads: [...readAll(lowering, inputs, ["x", "s", "sums", "dy", "w"]), ...reads], writes, domain,
      }),
    ];
  },

  sample_norm_grad_weights(lowering, group) {
    const op = find(group, "sample_norm_grad_weights");
    const { lanes, defines } = setsOf(op.attrs);
    const { GROUPS, GROUP_CHANNELS, PIXELWISE } = defines;
    return gradWeights(lowering, group, op, 4 * lanes, readAll(lowering, op.inputs, ["x", "s", "dy"]), { GROUPS, GROUP_CHANNELS, ...(PIXELWISE && { PIXELWISE }) });
  },

  batch_norm_statistics(lowering, { ops: [{ inputs, outputs, attrs }] }) {
    const { channels, eps, momentum, pixels } = attrs;
    const { spots, parts, trips } = spotsOf(lowering, attrs);
    const defines = { PIXELS: pixels, SPOTS: spots, PARTS: parts, BLOCK, EPS: exactFloat(eps) };
    const x = lowering.read("X", inputs.x);
    const draws = [];
    /** @type {any[]} */
    let reads = [x];
    if (parts > 1) {
      const moments = lowering.scratch(`moments of ${inputs.x}`, lowering.measure({ rows: 2 * parts, columns: channels, layers: 2 }));
      draws.push(lowering.draw("batch_moments", { trips: 2 * trips, defines, reads: [x], writes: [lowering.write("M", moments.name)], domain: moments.layout }));
      reads = [lowering.read("M", moments.name)];
    }
    const all = ["mean", "variance", "running_mean", "running_var"];
    // Four targets are what WebGL2 promises; with fewer, the running statistics are a draw of their own.
    for (const keys of lowering.maxDrawBuffers >= 4 ? [all] : [all.slice(0, 2), all.slice(2)]) {
      const running = keys.includes("running_mean");
      draws.push(
        lowering.draw("batch_norm_statistics", {
          trips: 2 * (parts > 1 ? parts + ceilDiv(parts, BLOCK) : trips),
          defines: { ...defines, ...(parts > 1 && { MERGE: 1 }), ...(keys.includes("mean") && { WITH_BATCH: 1 }), ...(running && { MOMENTUM: exactFloat(momentum), KEPT: exactFloat(1 - momentum) }) },
          reads: [...reads, ...(running ? readAll(lowering, inputs, all.slice(2)) : [])],
          writes: keys.map((key) => lowering.write(key.toUpperCase(), outputs[key])),
          domain: lowering.layout(outputs.mean),
        }),
      );
    }
    return draws;
  },

  batch_norm(lowering, group) {
    const { inputs, attrs } = group.ops[0];
    const { defines, writes, domain } = ending(lowering, group);
    return [
      lowering.draw("batch_norm", { trips: 0, defines: { EPS: exactFloat(attrs.eps), ...defines }, reads: readAll(lowering, inputs, ["x", "mean", "variance", "w"]), writes, domain }),
    ];
  },

  batch_norm_grad_weights(lowering, group) {
    const op = find(group, "batch_norm_grad_weights");
    return gradWeights(lowering, group, op, 0, readAll(lowering, op.inputs, ["x", "mean", "variance", "dy"]), { BATCH: 1, EPS: exactFloat(op.attrs.eps) });
  },

  batch_norm_grad_scale(lowering, group) {
    const { inputs, attrs } = group.ops[0];
    const { defines, reads, writes, domain } = ending(lowering, group);
    return [
      lowering.draw("batch_norm_grad_input", {
        trips: 0, defines: { EPS: exactFloat(attrs.eps), FROZEN: 1, ...defines }, reads: [...readAll(lowering, inputs, ["variance", "dy", "w"]), ...reads], writes, domain,
      }),
    ];
  },

  batch_norm_grad_input(lowering, group) {
    const { inputs, attrs } = group.ops[0];
    const { defines, reads, writes, domain } = ending(lowering, group);
    return [
      lowering.draw("batch_norm_grad_input", {
        trips: 0,
        defines: { EPS: exactFloat(attrs.eps), PIXELS: attrs.pixels, ...defines },
        reads: [...readAll(lowering, inputs, ["x", "mean", "variance", "dy", "w", "dw"]), ...reads],
        writes,
        domain,
      }),
    ];
  },
};
