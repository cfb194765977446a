// step: the scalars of one training step, the only thing that changes between two draws of the same kernel.
// 32 bytes, std140; browser_runtime/backends/webgl2/steps.js writes them.
layout(std140) uniform Step {
  int uRows;           // samples in this batch; rows past them are zero
  int uFirstRow;       // where the batch starts in tensors that hold an epoch
  float uInverseRows;  // 1 / samples: losses and gradients are means over the batch
  float uRate;         // learning rate; for Adam divided by 1 - beta1^t
  vec4 uOptimizer;     // sgd: momentum; adam: 1 - beta1, 1 - beta2, 1 / sqrt(1 - beta2^t), eps
};
