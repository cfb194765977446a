"""Activations and their gradients: how far a kernel may be off for what its input may be off, and for its own functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..curves import CURVES, normal_density, sigmoid, softmax
from ..oracle import MATH, TINY, Approx, Floats, U
from .base import OpRun, Oracle

STEEPEST = 1.5
"""No slope of any activation is larger."""


def _near_kink(kinks: tuple[float, ...], x: Approx) -> Floats:
    """Where it is the kernel's to say on which side of a kink an inexact number lies."""
    near = [np.abs(x.value - kink) <= x.error for kink in kinks]
    return (x.error > 0) & np.logical_or.reduce([np.zeros(x.value.shape, bool), *near])


def activation(fn: str, x: Approx) -> Approx:
    """act(x): the input's error times the steepest slope near it, and 4 ULP; of gelu's normal distribution 4 ULP of 1."""
    curve = CURVES[fn]
    y = curve.value(x.value)
    if fn == "linear":
        return x
    slope = np.where(
        _near_kink(curve.kinks, x), STEEPEST, np.abs(curve.slope(x.value)) + curve.curvature * x.error
    )
    own = MATH * np.abs(x.value) if fn == "gelu" else MATH * np.abs(y)
    own += TINY * (1 + np.abs(x.value))  # a factor of |x| may have been flushed
    exact = fn == "relu" or (curve.kinks != () and slope == 0)  # closed, or open to the end
    return Approx(y, slope * x.error + np.where(exact, 0, own))


_SENSITIVITY: dict[str, Callable[[Floats], Floats]] = {
    "sigmoid": lambda y: np.abs(1 - 2 * y),
    "tanh": lambda y: 2 * np.abs(y),
    "elu": lambda y: np.where(y < 0, 1.0, 0.0),
    "softplus": lambda y: np.exp(-y),
}
"""How fast a slope that is computed from the output changes with it."""
_OUTPUT_KINKS = {"relu": (0.0,), "leaky_relu": (0.0,), "hard_sigmoid": (0.0, 1.0)}


def _slope_from_output(fn: str, y: Approx) -> Approx:
    curve = CURVES[fn]
    assert curve.slope_from_output is not None
    slope = curve.slope_from_output(y.value)
    sensitivity = _SENSITIVITY.get(fn, np.zeros_like)(y.value)
    own = MATH * np.abs(slope) if fn == "softplus" else 3 * U * np.abs(slope)
    jump = np.where(_near_kink(_OUTPUT_KINKS.get(fn, ()), y), 1.0, 0.0)
    return Approx(slope, (sensitivity + 2 * y.error) * y.error + own + jump)


def _slope_from_input(fn: str, x: Approx) -> Approx:
    curve, size = CURVES[fn], np.abs(x.value)
    slope = curve.slope(x.value)
    own = {
        "silu": lambda: MATH * sigmoid(x.value) * (1 + 3 * size * sigmoid(-x.value)),
        "gelu": lambda: MATH * (1 + size * normal_density(x.value) * (1 + size**2)),
        "hard_swish": lambda: 3 * U * (size / 3 + 0.5),
    }[fn]()
    jump = np.where(_near_kink(curve.kinks, x), 1.0, 0.0)
    return Approx(slope, curve.curvature * x.error + own + jump + TINY * (1 + size**2))


def _activation_grad(run: OpRun) -> dict[str, Approx]:
    fn, dy = run.attrs["fn"], run.inputs["dy"]
    if fn == "linear":
        return {"dx": dy}
    slope = (
        _slope_from_output(fn, run.inputs["y"])
        if CURVES[fn].kept == "y"
        else _slope_from_input(fn, run.inputs["x"])
    )
    error = np.abs(slope.value) * dy.error + (np.abs(dy.value) + dy.error) * slope.error
    if fn == "relu":  # nothing is multiplied
        return {"dx": Approx(slope.value * dy.value, error - 3 * U * np.abs(slope.value * dy.value))}
    return {"dx": Approx(slope.value * dy.value, error).plus_roundings(1)}


def _pixels(run: OpRun, x: Floats) -> Floats:
    """[pixels, channels]."""
    return x.reshape(-1, run.channels)


def _blocked(channels: int, at_once: int) -> int:
    """Additions that a term passes through: blocks of 256, then the blocks."""
    return -(-min(channels, 256) // at_once) + -(-channels // 256) + at_once


def _softmax_channels(run: OpRun) -> dict[str, Approx]:
    x = run.read["x"]
    pixels = _pixels(run, x)
    below = pixels.max(axis=1, keepdims=True) - pixels
    y = softmax(pixels)
    each = U * below + MATH
    total = (y * each).sum(axis=1, keepdims=True) + _blocked(run.channels, 1) * U
    error = y * (each + total + MATH) + TINY
    return {"y": Approx(y.reshape(x.shape), error.reshape(x.shape))}


def _softmax_channels_grad(run: OpRun) -> dict[str, Approx]:
    dy, y = _pixels(run, run.read["dy"]), _pixels(run, run.read["y"])
    total, size = (dy * y).sum(axis=1, keepdims=True), np.abs(dy * y).sum(axis=1, keepdims=True)
    inner = (_blocked(run.channels, 4) + 1) * U * size
    dx = y * (dy - total)
    error = np.abs(y) * inner + 3 * U * np.abs(y) * (np.abs(dy) + np.abs(total)) + TINY
    return {"dx": Approx(dx.reshape(run.read["y"].shape), error.reshape(run.read["y"].shape))}


ACTIVATION: dict[str, Oracle] = {
    "activation": lambda run: {"y": activation(run.attrs["fn"], run.inputs["x"])},
    "activation_grad": _activation_grad,
    "softmax_channels": _softmax_channels,
    "softmax_channels_grad": _softmax_channels_grad,
}
