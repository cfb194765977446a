"""Every tolerance of the tests, each with its reason. Non-finite values must match exactly, whatever the tolerance."""

from __future__ import annotations

# shaders/lib/math.glsl, against float64: what the library promises. Its worst measured error is 2.2 (docs/numerics.md);
# the rest is for drivers whose division is off by up to 2.5 ULP, as the GLSL specification allows.
MATH_MAX_ULP = 4.0

# float64 reference against PyTorch float64: both round each operation to 2^-53 and sum in different orders.
REFERENCE_RTOL = 1e-12
REFERENCE_ATOL = 1e-14

# Kernels, against float64 on the inputs that they read: a bound is derived for each element (tests/kernels/oracle.py) from
# one rounding of 2^-24 an operation, MATH_MAX_ULP a function, and what GLSL ES allows of division and sqrt.
FLOAT32_ROUNDING = 2.0**-24
DIVISION_MAX_ULP = 2.5
SQRT_MAX_ULP = 4.5  # 1 / inversesqrt: 2.5 and 2

# Gradients of whole nets, against central differences in float64: relative to the largest gradient of the tensor. Measured
# below 2e-6 on SwiftShader; the rest is for drivers whose division is less exact.
GRADIENT_RTOL = 5e-6

# Parity with PyTorch float64 over 50 steps: the rule of docs/numerics.md.
PARITY_LOSS_RTOL = 1e-4
PARITY_LOSS_ATOL = 1e-6
PARITY_WEIGHT_ATOL = 1e-4
PARITY_MEDIAN_FACTOR = 4.0  # times the distance of PyTorch float32 ...
PARITY_MEDIAN_ATOL = 1e-6  # ... plus this

# Predictions and metrics of a whole net against NumPy float64, relative to the largest value: a few hundred roundings.
PREDICTION_RTOL = 1e-5

# The first losses of a run against float64, as the precision report gives them.
FIRST_LOSS_RTOL = 1e-6
