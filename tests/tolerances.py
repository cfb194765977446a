"""Every tolerance of the tests, each with its reason. Non-finite values must match exactly, whatever the tolerance."""

from __future__ import annotations

# shaders/lib/math.glsl, against float64: what the library promises. Its worst measured error is 2.2 (docs/numerics.md);
# the rest is for drivers whose division is off by up to 2.5 ULP, as the GLSL specification allows.
MATH_MAX_ULP = 4.0

# float64 reference against PyTorch float64: both round each operation to 2^-53 and sum in different orders.
REFERENCE_RTOL = 1e-12
REFERENCE_ATOL = 1e-14
