// step: the scalars of one training step, the only thing that changes between two draws of the same kernel.
// 64 bytes, std140; browser_runtime/backends/webgl2/steps.js writes them.
layout(std140) uniform Step {
  int uRows;           // samples in this batch; rows past them are zero
  int uFirstRow;       // where the batch starts in tensors that hold an epoch
  float uInverseRows;  // 1 / samples of all the step's batches: losses and their gradients are means over the step
  int uStep;           // batch of the run, counted from 0: which random numbers are drawn
  vec4 uOptimizer[3];  // scalars of the optimizer, the learning rate first; lib/optimizer.glsl names them
};
