"""Activations in float64 NumPy: values, slopes from the input, and how fast the slopes change. Independent of the engine's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Function = Callable[[Any], Any]

LEAKY_SLOPE = 0.01


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), relatively exact on both sides."""
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def normal_cdf(x: Any) -> Any:
    """The share of a normal distribution below x; NumPy has no erf."""
    return _normal_cdf(x)


def _of_one(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


_normal_cdf = np.vectorize(_of_one, otypes=[np.float64])


def normal_density(x: Any) -> Any:
    """Its derivative."""
    return np.exp(-0.5 * np.square(x)) / math.sqrt(2 * math.pi)


def below_zero(x: Any) -> Any:
    """The negative part."""
    return np.minimum(x, 0)


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), relatively exact on both sides."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def hard_sigmoid(x: Any) -> Any:
    """(x + 3) / 6 between 0 and 1."""
    return np.clip((x + 3) / 6, 0, 1)


def hard_swish(x: Any) -> Any:
    """Its product with x."""
    return x * hard_sigmoid(x)


def leaky_relu(x: Any) -> Any:
    """A hundredth of x below 0."""
    return np.where(x < 0, LEAKY_SLOPE * x, x)


def elu(x: Any) -> Any:
    """exp(x) - 1 below 0."""
    return np.where(x < 0, np.expm1(below_zero(x)), x)


def softmax(x: Any) -> Any:
    """Over the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class Curve:
    """An activation of single elements."""

    value: Function
    slope: Function
    curvature: float
    """The largest |second derivative|; between kinks, where there are some."""
    kinks: tuple[float, ...] = ()
    """Inputs at which the slope jumps."""
    kept: str = "y"
    """What the engine computes the slope from: the output y or the input x."""
    slope_from_output: Function | None = None


CURVES: dict[str, Curve] = {
    "linear": Curve(lambda x: x, np.ones_like, 0, slope_from_output=np.ones_like),
    "relu": Curve(lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0, 0, (0,), slope_from_output=lambda y: (y > 0) * 1.0),
    "leaky_relu": Curve(
        leaky_relu, lambda x: np.where(x > 0, 1, LEAKY_SLOPE), 0, (0,),
        slope_from_output=lambda y: np.where(y > 0, 1, LEAKY_SLOPE),
    ),
    "elu": Curve(
        elu, lambda x: np.exp(below_zero(x)), 1,
        slope_from_output=lambda y: below_zero(y) + 1,
    ),
    "gelu": Curve(lambda x: x * normal_cdf(x), lambda x: normal_cdf(x) + x * normal_density(x), 0.8, kept="x"),
    "silu": Curve(lambda x: x * sigmoid(x), lambda x: sigmoid(x) * (1 + x * sigmoid(-x)), 0.5, kept="x"),
    "sigmoid": Curve(sigmoid, lambda x: sigmoid(x) * sigmoid(-x), 0.1, slope_from_output=lambda y: y * (1 - y)),
    "tanh": Curve(np.tanh, lambda x: 1 / np.cosh(x) ** 2, 0.8, slope_from_output=lambda y: (1 - y) * (1 + y)),
    "softplus": Curve(softplus, sigmoid, 0.25, slope_from_output=lambda y: -np.expm1(-y)),
    "hard_sigmoid": Curve(
        hard_sigmoid, lambda x: np.where(np.abs(x) < 3, 1 / 6, 0), 0, (-3, 3),
        slope_from_output=lambda y: np.where((y > 0) & (y < 1), 1 / 6, 0),
    ),
    "hard_swish": Curve(
        hard_swish, lambda x: np.where(x < -3, 0, np.where(x > 3, 1, x / 3 + 0.5)), 1 / 3, (-3, 3), kept="x"
    ),
}  # fmt: skip
VALUES: dict[str, Function] = {name: curve.value for name, curve in CURVES.items()} | {"softmax": softmax}
"""Every activation of the spec: what it makes of its input."""
