"""Every tolerance of the tests, each with its reason. Non-finite values must match exactly, whatever the tolerance."""

from __future__ import annotations

# shaders/lib/math.glsl, against float64: what the library promises. Its worst measured error is 2.2 (docs/numerics.md);
# the rest is for drivers whose division is off by up to 2.5 ULP, as the GLSL specification allows.
MATH_MAX_ULP = 4.0

# float64 reference against PyTorch float64: both round each operation to 2^-53 and sum in different orders.
REFERENCE_RTOL = 1e-12
REFERENCE_ATOL = 1e-14

# The same sums merged from pieces, of values that lie 2,000 deviations from 0: their squares lose six digits.
MERGED_RTOL = 1e-10

# Mean, deviation and offset of float32 numbers, of which each was rounded once.
NORMALIZED_TOL = 1e-6

# Orthogonal matrices of float32: the products of their columns sum up to 50 elements of at most 1, each rounded once.
ORTHOGONAL_ATOL = 5e-7

# Learning rates in JavaScript and Python: one formula, but each has its own cos and pow.
SCHEDULE_RTOL = 1e-14

# Kernels, against float64 on the inputs that they read: a bound is derived for each element (tests/kernels/oracle.py) from
# one rounding of 2^-24 an operation, MATH_MAX_ULP a function, and what GLSL ES allows of division and sqrt.
FLOAT32_ROUNDING = 2.0**-24
DIVISION_MAX_ULP = 2.5
SQRT_MAX_ULP = 4.5  # 1 / inversesqrt: 2.5 and 2

# Gradients of whole nets, against central differences in float64: relative to the largest gradient of the tensor. Measured
# below 2e-6 on SwiftShader; the rest is for drivers whose division is less exact.
GRADIENT_RTOL = 5e-6
GRADIENT_ATOL = 1e-8  # of the central difference itself: STEP^2 f'''/6 + 1e-16/STEP, both about 1e-9

# Parity with PyTorch float64 over 50 steps: the rule of docs/numerics.md.
PARITY_LOSS_RTOL = 1e-4
PARITY_LOSS_ATOL = 1e-6
PARITY_WEIGHT_ATOL = 1e-4
PARITY_MEDIAN_FACTOR = 4.0  # times the distance of PyTorch float32 ...
PARITY_MEDIAN_ATOL = 1e-6  # ... plus this

# Stored runs of PyTorch float64 against live ones: another machine sums in another order, and 50 steps carry that on.
GOLDEN_LOSS_RTOL = 1e-9
GOLDEN_WEIGHT_RTOL = 1e-6
GOLDEN_WEIGHT_ATOL = 1e-8

# Predictions and metrics of a whole net against NumPy float64, relative to the largest value: a few hundred roundings.
PREDICTION_RTOL = 1e-5

# The loss of a net that is trained to the end, likewise: it is small beside the logits that it comes from.
TRAINED_LOSS_RTOL = 1e-4

# The same numbers summed in float32 in other parts.
RESUMMED_RTOL = 1e-6

# exp(-30) as a loss and as a gradient: MATH_MAX_ULP, and one rounding of the argument, which counts 30 times.
CONFIDENT_RTOL = 1e-5

# Cases worked out by hand on whole numbers up to 9: few roundings.
BY_HAND_TOL = 2e-6  # relative and absolute

# Values that stay finite where others of the same step do not, against plain NumPy: as BY_HAND_TOL, through two layers.
FINITE_RTOL = 1e-5
FINITE_ATOL = 1e-6

# The first losses of a run against float64, as the precision report gives them.
FIRST_LOSS_RTOL = 1e-6
# The report's own relative errors, worked out again: both subtract numbers that agree to 6 digits or more.
REPORTED_ERROR_RTOL = 1e-6
REPORTED_ERROR_ATOL = 1e-12

# One step from several batches against one batch of all their rows: the same sums in other parts, over 8 steps of Adam, whose
# steps do not shrink with the gradient.
ACCUMULATED_TOL = 2e-5

# What the report shows of an element beside its tensor's largest value: of a right kernel (measured below 5e-7), and at
# least of one that was spoilt on purpose.
OPERATOR_RIGHT = 2e-6
OPERATOR_WRONG = 1e-4

# gelu in roundings of x, and slopes that are computed from the input in roundings of 1: erf and exp are within
# MATH_MAX_ULP of their values, which are at most 1, and the terms of a slope add up.
GELU_ROUNDINGS = 2 * MATH_MAX_ULP

# Exported models in other runtimes against float64, relative to the largest output: they sum in float32 in an order of their own,
# and TensorFlow.js normalises inputs in float32.
EXPORT_RTOL = 2e-5
# Metrics of the host against scikit-learn: both sum up in float64, in another order.
METRIC_RTOL = 1e-12
METRIC_ATOL = 1e-12
