// matmul.js: C = A @ B and its gradients in float64, one running sum over the inner dimension.
import { matrixSize, requireShapes, tensor } from "./tensor.js";

/** @import { Tensor } from "./tensor.js" */

/** @param {Tensor} a [M,K] @param {Tensor} b [K,N] @returns {Tensor} [M,N] */
export function matmul(a, b) {
  const [M, K] = matrixSize(a, "matmul");
  const [bK, N] = matrixSize(b, "matmul");
  requireShapes("matmul", K === bK, a, b);
  const c = tensor([M, N]);
  for (let m = 0; m < M; m++) {
    for (let k = 0; k < K; k++) {
      const factor = a.data[m * K + k];
      for (let n = 0; n < N; n++) c.data[m * N + n] += factor * b.data[k * N + n];
    }
  }
  return c;
}

/** @param {Tensor} dc [M,N] @param {Tensor} b [K,N] @returns {Tensor} dA = dC @ B^T, [M,K] */
export function matmulGradA(dc, b) {
  requireShapes("matmul_grad_a", matrixSize(dc, "matmul_grad_a")[1] === matrixSize(b, "matmul_grad_a")[1], dc, b);
  return matmul(dc, transpose(b));
}

/** @param {Tensor} a [M,K] @param {Tensor} dc [M,N] @returns {Tensor} dB = A^T @ dC, [K,N] */
export function matmulGradB(a, dc) {
  requireShapes("matmul_grad_b", matrixSize(a, "matmul_grad_b")[0] === matrixSize(dc, "matmul_grad_b")[0], a, dc);
  return matmul(transpose(a), dc);
}

/** @param {Tensor} a [M,N] @returns {Tensor} [N,M] */
export function transpose(a) {
  const [M, N] = matrixSize(a, "transpose");
  const result = tensor([N, M]);
  for (let m = 0; m < M; m++) for (let n = 0; n < N; n++) result.data[n * M + m] = a.data[m * N + n];
  return result;
}
