// dense.js: a fully connected layer before its activation, y = x @ kernel + bias, and its gradients in float64.
import { matmul, matmulGradA, matmulGradB } from "./matmul.js";
import { map, matrixSize, requireShapes, tensor } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */

/**
 * @param {Tensor} x [M,K]
 * @param {Tensor} kernel [K,N]
 * @param {Tensor | null} bias [N]
 * @returns {Tensor} [M,N]
 */
export function dense(x, kernel, bias) {
  const y = matmul(x, kernel);
  if (bias === null) return y;
  const N = kernel.shape[1];
  requireShapes("dense: the bias", bias.shape.length === 1 && bias.shape[0] === N, kernel, bias);
  return map(y, (value, index) => value + bias.data[index % N]);
}

/** @param {Tensor} dy [M,N] @param {Tensor} kernel [K,N] @returns {Tensor} dx [M,K] */
export function denseGradInput(dy, kernel) {
  return matmulGradA(dy, kernel);
}

/** @param {Tensor} x [M,K] @param {Tensor} dy [M,N] @returns {{kernel: Tensor, bias: Tensor}} gradients [K,N] and [N] */
export function denseGradWeights(x, dy) {
  const [M, N] = matrixSize(dy, "dense_grad_weights");
  const bias = tensor([N]);
  for (let m = 0; m < M; m++) for (let n = 0; n < N; n++) bias.data[n] += dy.data[m * N + n];
  return { kernel: matmulGradB(x, dy), bias };
}
