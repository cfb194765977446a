"""Synthetic data sets, the same bits on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .rng import RandomStream, Stream

CENTRE = 1.2  # of class 1, in both coordinates; class 0 mirrors it
SPREAD = 0.5  # standard deviation of each coordinate


def two_class_points(rows: int, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return points of two Gaussian clusters in the plane, classes 0 and 1 in turn.

    Each cluster's centre is 3.4 standard deviations from the line between them, x0 + x1 = 0: few points lie beyond it.

    Args:
        rows: number of points, at least 1.
        seed: 0 <= seed < 2^53; the points are drawn from its stream SYNTHETIC.

    Returns: x float32 [rows, 2], y int32 [rows] of 0 and 1.

    """
    if rows < 1:
        raise ValueError(f"rows must be at least 1, not {rows}")
    y = np.arange(rows, dtype=np.int32) % 2
    noise = RandomStream(seed, Stream.SYNTHETIC).normal(2 * rows).reshape(rows, 2)
    centres = np.where(y == 1, CENTRE, -CENTRE)[:, np.newaxis]
    return (centres + SPREAD * noise).astype(np.float32), y
