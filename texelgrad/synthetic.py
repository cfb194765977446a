"""Synthetic data sets, the same bits on every machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .rng import RandomStream, Stream

CENTRE = 1.2  # of class 1, in both coordinates; class 0 mirrors it
SPREAD = 0.5  # standard deviation of each coordinate


Floats = NDArray[np.float64]


def two_class_points(rows: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return points of two Gaussian clusters in the plane, classes 0 and 1 in turn.

    Each cluster's centre is 3.4 standard deviations from the line between them, x0 + x1 = 0: few points lie beyond it.

    Args:
        rows: number of points, at least 1.
        seed: 0 <= seed < 2^53; the points are drawn from its stream SYNTHETIC.

    Returns: x float32 [rows, 2], y int32 [rows] of 0 and 1.

    """
    _check(rows)
    y = np.arange(rows, dtype=np.int32) % 2
    noise = RandomStream(seed, Stream.SYNTHETIC).normal(2 * rows).reshape(rows, 2)
    centres = np.where(y == 1, CENTRE, -CENTRE)[:, np.newaxis]
    return (centres + SPREAD * noise).astype(np.float32), y


def spirals(rows: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return points of two spirals wound into each other, classes 0 and 1 in turn; no straight line parts them.

    Each turns one and a half times while its radius grows from 0.1 to 1; the noise has a standard deviation of 0.02.

    Returns: x float32 [rows, 2], y int32 [rows] of 0 and 1.

    """
    _check(rows)
    stream = RandomStream(seed, Stream.SYNTHETIC)
    y = np.arange(rows, dtype=np.int32) % 2
    along = np.sqrt(stream.uniform(rows))  # as many points outside, where the spiral is longer
    noise = stream.normal(2 * rows).reshape(rows, 2)
    cosine, sine = _turn(along)
    radius = (0.1 + 0.9 * along) * np.where(y == 1, 1.0, -1.0)
    return (np.stack([radius * cosine, radius * sine], axis=1) + 0.02 * noise).astype(np.float32), y


def xor(rows: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return points of the square from -1 to 1; class 1 where their coordinates have different signs.

    Returns: x float32 [rows, 2], y int32 [rows] of 0 and 1.

    """
    _check(rows)
    x = (2 * RandomStream(seed, Stream.SYNTHETIC).uniform(2 * rows).reshape(rows, 2) - 1).astype(np.float32)
    return x, ((x[:, 0] > 0) != (x[:, 1] > 0)).astype(np.int32)


def regression(rows: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return x of four standard normal features, and y = x0 - 2 x1 + x2 / 2 + x0 x3 + noise of deviation 0.1.

    Returns: x float32 [rows, 4], y float32 [rows].

    """
    _check(rows)
    stream = RandomStream(seed, Stream.SYNTHETIC)
    x = stream.normal(4 * rows).reshape(rows, 4)
    y = x[:, 0] - 2 * x[:, 1] + 0.5 * x[:, 2] + x[:, 0] * x[:, 3] + 0.1 * stream.normal(rows)
    return x.astype(np.float32), y.astype(np.float32)


GENERATORS: Mapping[str, Callable[[int, int], tuple[NDArray[Any], NDArray[Any]]]] = {
    "two_class_points": two_class_points,
    "spirals": spirals,
    "xor": xor,
    "regression": regression,
}
"""By `data.synthetic.kind`: x and y of (rows, seed)."""


def _turn(along: Floats) -> tuple[Floats, Floats]:
    """Cosine and sine of 3 pi times numbers in (0, 1), by + - * / alone: NumPy's differ between machines.

    A small angle's point comes from its half's tangent, then it is doubled four times: (c + i s)^2.
    """
    small = along * (3 * 3.141592653589793 / 32)
    square = small * small
    tangent = small * (1 + square * (1 / 3 + square * (2 / 15)))
    cosine = (1 - tangent * tangent) / (1 + tangent * tangent)
    sine = 2 * tangent / (1 + tangent * tangent)
    for _ in range(4):
        cosine, sine = cosine * cosine - sine * sine, 2 * cosine * sine
    return cosine, sine


def _check(rows: int) -> None:
    if rows < 1:
        raise ValueError(f"rows must be at least 1, not {rows}")
