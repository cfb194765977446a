// index.js: every op of the engine in float64 by the name it has in the graph: inputs and attributes in, outputs out.
import { activations } from "./activations.js";
import { conv2d, conv2dGradInput, conv2dGradWeights } from "./conv2d.js";
import { dense, denseGradInput, denseGradWeights } from "./dense.js";
import { gather } from "./gather.js";
import { correctRows, lossGrad, lossRows } from "./losses.js";
import { maxPool2d, maxPool2dGrad } from "./max_pool2d.js";
import { matmul, matmulGradA, matmulGradB } from "./matmul.js";
import { gradFactor, update } from "./optimizers.js";
import { softmaxChannels, softmaxChannelsGrad } from "./softmax_channels.js";
import { map, zip } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */
/** @typedef {(inputs: Record<string, any>, attrs: any) => Record<string, Tensor>} ReferenceOp */

/** @type {Record<string, ReferenceOp>} */
export const ops = {
  matmul: ({ a, b }) => ({ c: matmul(a, b) }),
  matmul_grad_a: ({ dc, b }) => ({ da: matmulGradA(dc, b) }),
  matmul_grad_b: ({ a, dc }) => ({ db: matmulGradB(a, dc) }),

  affine: ({ x, kernel, bias = null }) => ({ y: dense(x, kernel, bias) }),
  affine_grad_input: ({ dy, kernel }) => ({ dx: denseGradInput(dy, kernel) }),
  affine_grad_weights: ({ x, dy }) => denseGradWeights(x, dy),

  conv2d: ({ x, kernel, bias }, geometry) => ({ y: conv2d(x, kernel, bias, geometry) }),
  conv2d_grad_input: ({ dy, kernel }, geometry) => ({ dx: conv2dGradInput(dy, kernel, geometry) }),
  conv2d_grad_weights: ({ x, dy }, geometry) => conv2dGradWeights(x, dy, geometry),

  max_pool2d: ({ x }, geometry) => ({ y: maxPool2d(x, geometry) }),
  max_pool2d_grad: ({ x, dy }, geometry) => ({ dx: maxPool2dGrad(x, dy, geometry) }),

  activation: ({ x }, { fn }) => ({ y: map(x, activations[fn].value) }),
  // from y, or where the caller kept it, from x
  activation_grad({ dy, y, x }, { fn }) {
    const { slopeFromInput, slopeFromOutput } = activations[fn];
    // 0 and not 0 * dy where the slope is 0: an infinite gradient must not become NaN behind a closed relu
    const scale = (/** @type {number} */ slope, /** @type {number} */ gradient) => (slope === 0 ? 0 : slope * gradient);
    const slopes = x || !slopeFromOutput ? map(x, slopeFromInput) : map(y, slopeFromOutput);
    return { dx: zip(slopes, dy, scale) };
  },
  softmax_channels: ({ x }) => ({ y: softmaxChannels(x) }),
  softmax_channels_grad: ({ dy, y }) => ({ dx: softmaxChannelsGrad(dy, y) }),

  // the loss and the accuracy of each row; the gradient is that of the mean over the batch
  add: ({ a, b }) => ({ y: zip(a, b, (p, q) => p + q) }),

  loss: ({ z, target }, { fn, labels }) => ({ loss: lossRows(fn, z, target, labels) }),
  loss_grad: ({ z, target }, { fn, labels }) => ({ dz: lossGrad(fn, z, target, labels) }),
  accuracy: ({ z, target }, { fn, labels }) => ({ correct: correctRows(fn, z, target, labels) }),

  grad_factor: ({ gradients }, { clip }) => ({ factor: gradFactor(gradients, clip.global_norm) }),
  update: ({ w, dw, ...states }, { optimizer, lr, multiplier = 1, ...step }) => update(w, dw, states, optimizer, { ...step, lr: lr * multiplier }),
  gather: ({ source, order }) => ({ rows: gather(source, order.data) }),
};
