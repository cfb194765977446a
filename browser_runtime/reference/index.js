// index.js: every op of the engine in float64 by the name it has in the graph: inputs and attributes in, outputs out.
import { activations } from "./activations.js";
import { batchNorm, batchNormGradInput, batchNormGradScale, batchNormGradWeights, batchNormStatistics } from "./batch_norm.js";
import { conv2d, conv2dGradInput, conv2dGradWeights, im2col } from "./conv2d.js";
import { dense, denseGradInput, denseGradWeights } from "./dense.js";
import { embedding, embeddingGradWeights } from "./embedding.js";
import { dropout } from "./dropout.js";
import { gather } from "./gather.js";
import { correctRows, lossGrad, lossRows, weightRows } from "./losses.js";
import { maxPool2d, maxPool2dGrad } from "./max_pool2d.js";
import { matmul, matmulGradA, matmulGradB } from "./matmul.js";
import { concat, shift2d, sliceChannels } from "./move.js";
import { gradNorm, update } from "./optimizers.js";
import { sampleNorm, sampleNormGradInput, sampleNormGradSums, sampleNormGradWeights, sampleNormStatistics } from "./sample_norm.js";
import { softmaxChannels, softmaxChannelsGrad } from "./softmax_channels.js";
import { map, zip } from "./tensor.js";
import { windowSpread, windowSum } from "./windows.js";

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
  im2col: ({ x }, geometry) => ({ patches: im2col(x, geometry) }),
  conv2d_grad_input: ({ dy, kernel }, geometry) => ({ dx: conv2dGradInput(dy, kernel, geometry) }),
  conv2d_grad_weights: ({ x, dy }, geometry) => conv2dGradWeights(x, dy, geometry),

  embedding: ({ x, table }) => ({ y: embedding(x, table) }),
  embedding_grad_weights: ({ x, dy }, { vocabulary }) => ({ table: embeddingGradWeights(x, dy, vocabulary) }),

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
  multiply: ({ a, b }) => ({ y: zip(a, b, (p, q) => p * q) }),

  avg_pool2d: ({ x }, geometry) => ({ y: windowSum(x, geometry, true) }),
  avg_pool2d_grad: ({ dy }, geometry) => ({ dx: windowSpread(dy, geometry, true) }),
  upsample2d: ({ x }, geometry) => ({ y: windowSpread(x, geometry, false) }),
  upsample2d_grad: ({ dy }, geometry) => ({ dx: windowSum(dy, geometry, false) }),

  dropout: ({ x, mask }, { kept }) => ({ y: dropout(x, mask.data, kept) }),

  reshape: ({ x }) => ({ y: x }),
  shift2d: ({ x }, geometry) => ({ y: shift2d(x, geometry) }),
  concat: ({ a, b }) => ({ y: concat(a, b) }),
  slice_channels: ({ x }, { first, count }) => ({ y: sliceChannels(x, first, count) }),

  loss: ({ z, target, weights, rows }, { fn, labels, ...o }) => ({ loss: weightRows(lossRows(fn, z, target, labels, { ...o, weights: weights?.data }), rows) }),
  loss_grad: ({ z, target, weights, rows }, { fn, labels, ...o }) => ({ dz: weightRows(lossGrad(fn, z, target, labels, { ...o, weights: weights?.data }), rows) }),
  accuracy: ({ z, target }, { fn, labels }) => ({ correct: correctRows(fn, z, target, labels) }),

  sample_norm_statistics: ({ x }, sets) => ({ s: sampleNormStatistics(x, sets) }),
  sample_norm: ({ x, s, gamma, beta }, sets) => ({ y: sampleNorm(x, s, gamma, beta, sets) }),
  sample_norm_grad_sums: ({ x, s, dy, gamma }, sets) => ({ sums: sampleNormGradSums(x, s, dy, gamma, sets) }),
  sample_norm_grad_input: ({ x, s, sums, dy, gamma }, sets) => ({ dx: sampleNormGradInput(x, s, sums, dy, gamma, sets) }),
  sample_norm_grad_weights: ({ x, s, dy }, sets) => sampleNormGradWeights(x, s, dy, sets),

  batch_norm_statistics: ({ x, running_mean, running_var }, attrs) => batchNormStatistics(x, running_mean, running_var, attrs),
  batch_norm: ({ x, mean, variance, gamma, beta }, attrs) => ({ y: batchNorm(x, mean, variance, gamma, beta, attrs) }),
  batch_norm_grad_weights: ({ x, mean, variance, dy }, attrs) => batchNormGradWeights(x, mean, variance, dy, attrs),
  batch_norm_grad_scale: ({ variance, dy, gamma }, attrs) => ({ dx: batchNormGradScale(variance, dy, gamma, attrs) }),
  batch_norm_grad_input: ({ x, mean, variance, dy, gamma, dgamma, dbeta }, attrs) => ({
    dx: batchNormGradInput(x, mean, variance, dy, gamma, { gamma: dgamma, beta: dbeta }, attrs),
  }),

  grad_norm: ({ gradients }, { clip }) => ({ norm: gradNorm(gradients, clip?.global_norm) }),
  update: ({ w, dw, ...states }, { optimizer, lr, multiplier = 1, ...step }) => update(w, dw, states, optimizer, { ...step, lr: lr * multiplier }),
  gather: ({ source, order }) => ({ rows: gather(source, order.data) }),
};
