// Pooling.
import { ACTIVATIONS, area, find, slopeParts, windowDefines } from "./common.js";

/** @import { Kernel } from "./index.js" */

/** What each window holds together: their sum, or their mean. @param {"x"|"dy"} from @param {"y"|"dx"} to @param {boolean} mean @returns {Kernel} */
const gathering = (from, to, mean) => (lowering, { ops: [op, grad] }) => {
  const y = grad?.outputs.dx ?? op.outputs[to];
  const slope = slopeParts(lowering, grad);
  return [
    lowering.draw("window_sum", {
      trips: area(op.attrs.taps),
      defines: { ...windowDefines(op.attrs), ...(mean && { MEAN: 1 }), ...slope.defines },
      reads: [lowering.read("X", op.inputs[from]), ...slope.reads],
      writes: [lowering.write("Y", y)],
      domain: lowering.layout(y),
    }),
  ];
};

/** To each element what its windows hold, or its share of that. @param {"x"|"dy"} from @param {"y"|"dx"} to @param {boolean} mean @returns {Kernel} */
const spreading = (from, to, mean) => (lowering, { ops: [op, grad] }) => {
  const { taps, stride } = op.attrs;
  const x = grad?.outputs.dx ?? op.outputs[to];
  const slope = slopeParts(lowering, grad);
  return [
    lowering.draw("window_spread", {
      trips: Math.ceil(taps[0] / stride[0]) * Math.ceil(taps[1] / stride[1]),
      defines: { ...windowDefines(op.attrs), ...(mean && { MEAN: 1 }), ...slope.defines },
      reads: [lowering.read("Y", op.inputs[from]), ...slope.reads],
      writes: [lowering.write("X", x)],
      domain: lowering.layout(x),
    }),
  ];
};

/** @type {Record<string, Kernel>} */
export const kernels = {
  avg_pool2d: gathering("x", "y", true),
  avg_pool2d_grad: spreading("dy", "dx", true),
  upsample2d: spreading("x", "y", false),
  upsample2d_grad: gathering("dy", "dx", false),

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
    const { taps, stride } = pool.attrs;
    const defines = windowDefines(pool.attrs);
    const winner = lowering.scratch(`${pool.outputs.dx}.winner`, lowering.layout(pool.inputs.y));
    return [
      lowering.draw("max_pool2d", {
        trips: area(taps),
        defines: { ...defines, WINNER: 1 },
        reads: [lowering.read("X", pool.inputs.x)],
        writes: [lowering.write("Y", winner.name)],
        domain: winner.layout,
      }),
      lowering.draw("max_pool2d_grad", {
        trips: Math.ceil(taps[0] / stride[0]) * Math.ceil(taps[1] / stride[1]),
        defines: { ...defines, GRAD_ACTIVATION: ACTIVATIONS[grad?.attrs.fn ?? "linear"] },
        reads: [lowering.read("WINNER", winner.name), ...(grad ? [lowering.read("Y", pool.inputs.y)] : []), lowering.read("DY", pool.inputs.dy)],
        writes: [lowering.write("DX", dx)],
        domain: lowering.layout(dx),
      }),
    ];
  },
};
