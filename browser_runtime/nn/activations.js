// Activations, as the planner knows them. Formulas: reference/activations.js, reference/softmax_channels.js; kernels: shaders/lib/curves.glsl.

/**
 * `gradFrom`: whether the derivative is computed from the output, so that the input need not be kept, or from the input.
 * `op`: the graph's op, where it does not treat each element alone.
 * @type {Record<string, {gradFrom: "output"|"input", op?: string}>}
 */
export const activations = {
  linear: { gradFrom: "output" },
  relu: { gradFrom: "output" },
  leaky_relu: { gradFrom: "output" },
  elu: { gradFrom: "output" },
  gelu: { gradFrom: "input" },
  silu: { gradFrom: "input" },
  sigmoid: { gradFrom: "output" },
  tanh: { gradFrom: "output" },
  softplus: { gradFrom: "output" },
  hard_sigmoid: { gradFrom: "output" },
  hard_swish: { gradFrom: "input" },
  softmax: { gradFrom: "output", op: "softmax_channels" },
};

/** Those that pass what is positive and damp what is negative: He's initialisation suits them. */
export const RELU_LIKE = ["relu", "leaky_relu", "elu", "gelu", "silu", "hard_swish"];
