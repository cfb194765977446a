"""Derives the polynomial coefficients of shaders/lib/math.glsl; prints them, lowest power first.

Each polynomial is a minimax fit of a smooth core function (the awkward part, such as 1 + r of exp, is left out and added
exactly by the shader): least squares in extended precision on Chebyshev nodes, reweighted by Lawson's iteration until the
error levels out, then rounded to float32 from the lowest power upwards, refitting the rest after each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LN2 = math.log(2)
Array = NDArray[np.float64]


def series(coefficients: Callable[[int], float], terms: int) -> Callable[[Array], Array]:
    """A power series, for cores whose closed form cancels near 0."""
    return lambda t: sum((coefficients(k) * t**k for k in range(terms)), np.zeros_like(t))


def erfc_exponent(a: Array) -> Array:
    """log(erfc(a)) / a: erf(a) = 1 - exp(a * this)."""
    return np.array([math.log(math.erfc(value)) / value for value in a])


@dataclass(frozen=True)
class Fit:
    """A polynomial in `t`, of `degree`, that approximates `core` on [low, high] under the error's `weight`."""

    name: str
    core: Callable[[Array], Array]
    degree: int
    low: float
    high: float
    weight: Callable[[Array], Array]  # what turns the polynomial's error into the function's relative error


FITS = (
    # exp(r) = 1 + r + r^2 P(r), expm1(r) = r + r^2 P(r); weighted by |r| for expm1, the harder of the two
    Fit("EXP", series(lambda k: 1 / math.factorial(k + 2), 20), 4, -LN2 / 2, LN2 / 2, np.abs),
    # log(1 + f) = f - f^2/2 + s (f^2/2 + z P(z)), s = f/(2+f), z = s^2; 2 atanh(s) = 2 s + s z P(z)
    Fit("LOG", series(lambda k: 2 / (2 * k + 3), 60), 2, 0, 0.0295, lambda z: z),
    # the same for 0 <= f <= 1, so that log1p(exp(-|x|)) needs no reduction
    Fit("LOG_UNIT", series(lambda k: 2 / (2 * k + 3), 60), 3, 0, 1 / 9, lambda z: z),
    # erf(a) = a P(z), z = a^2
    Fit(
        "ERF",
        series(lambda k: 2 / math.sqrt(math.pi) * (-1) ** k / (math.factorial(k) * (2 * k + 1)), 30),
        5,
        0,
        1,
        lambda z: 1 / (1 - z / 4),
    ),
    # erf(a) = 1 - exp(a P(a))
    Fit("ERFC", erfc_exponent, 5, 1, 4, lambda a: a * np.exp(-(a**2))),
)


def lawson(fit: Fit, fixed: Sequence[float]) -> Array:
    """All coefficients of the minimax fit, lowest power first, where the first ones are given."""
    nodes = 400
    t = fit.low + (fit.high - fit.low) * (1 - np.cos((np.arange(nodes) + 0.5) * np.pi / nodes)) / 2
    powers = np.vander(t, fit.degree + 1, increasing=True)
    known = np.array(fixed, np.float64)
    target = fit.core(t) - powers[:, : len(known)] @ known
    free = powers[:, len(known) :]
    scale = np.abs(fit.weight(t))
    weights = np.ones(nodes)
    best, best_error = np.zeros(free.shape[1]), math.inf
    for _ in range(200):
        rows = np.sqrt(weights) * scale
        found = np.linalg.lstsq(free * rows[:, None], target * rows, rcond=None)[0]
        error = np.abs(free @ found - target) * scale
        if error.max() < best_error:
            best, best_error = found, float(error.max())
        weights *= error / error.max() + 1e-3
        weights /= weights.sum()
    return np.concatenate([known, best]).astype(np.float64)


def derive(fit: Fit) -> tuple[list[float], float]:
    """The float32 coefficients, lowest power first, and the largest weighted error that they leave."""
    rounded: list[float] = []
    for power in range(fit.degree + 1):
        rounded.append(float(np.float32(lawson(fit, rounded)[power])))
    t = np.linspace(fit.low, fit.high, 10_001)[1:]
    error = np.abs(np.polynomial.polynomial.polyval(t, rounded) - fit.core(t)) * np.abs(fit.weight(t))
    return rounded, float(error.max())


def main() -> None:
    """Print every polynomial with the error it leaves."""
    for fit in FITS:
        coefficients, error = derive(fit)
        print(
            f"{fit.name}: degree {fit.degree} on [{fit.low:.6g}, {fit.high:.6g}], error {error * 2**24:.3f} * 2^-24"
        )
        for power, coefficient in enumerate(coefficients):
            print(f"{power}: {coefficient:.9g}")


if __name__ == "__main__":
    main()
