"""What is stored of an array's values besides the bytes, gathered block by block: moments of each feature, classes, losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texelgrad.rows import Array, Rows
from texelgrad.shapes import Stats

_MAX_COUNTS = 1000  # classes of which it is told how many rows they have
_MAX_FEATURES = 1000  # of which each has statistics of its own
Floats = NDArray[np.float64]


def statistics(
    rows: Rows, *, target: bool, classes: list[str] | None, columns: list[str] | None, warnings: list[str]
) -> Stats:
    """The statistics of an array as it is stored, float32 or int32.

    Args:
        rows: at least one, all values finite.
        target: whether the rows of each class are counted.
        classes: their names, where there are some.
        columns: the names of the columns, where the array is of a table.
        warnings: what was lost on the way.
    """
    width = rows.shape[-1] if len(rows.shape) > 1 else 1
    moments = _Moments(width if width <= _MAX_FEATURES else 1)
    counts: dict[int, int] | None = {} if target and rows.dtype.kind == "i" else None
    integral, sums_one = True, len(rows.shape) == 2
    for block in rows.blocks():
        moments.add(block)
        integral = integral and bool(np.all(block == np.floor(block)))
        sums_one = sums_one and bool(np.all(np.abs(block.sum(axis=-1, dtype=np.float64) - 1) <= 1e-5))
        if counts is not None:
            counts = _counted(counts, block)
    features = len(rows.shape) > 1 and moments.columns == width
    return Stats(
        min=float(moments.low.min()),
        max=float(moments.high.max()),
        integral=integral,
        row_sums_one=sums_one,
        mean=float(moments.mean.mean()),
        std=moments.deviation_of_all(),
        counts=None if counts is None else {str(value): counts[value] for value in sorted(counts)},
        classes=classes,
        columns=columns,
        warnings=warnings or None,
        features=moments.by_feature() if features else None,
    )


class _Moments:
    """Extremes, mean and sum of squares from the mean, by column; blocks are merged by Chan's update."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.count = 0
        self.low: Floats = np.full(columns, np.inf)
        self.high: Floats = np.full(columns, -np.inf)
        self.mean: Floats = np.zeros(columns)
        self.squares: Floats = np.zeros(columns)

    def add(self, block: Array) -> None:
        """Take some more rows."""
        values = block.reshape(-1, self.columns)
        self.low = np.minimum(self.low, values.min(axis=0))
        self.high = np.maximum(self.high, values.max(axis=0))
        mean = values.mean(axis=0, dtype=np.float64)
        squares = np.square(values - mean).sum(axis=0)
        total = self.count + len(values)
        delta = mean - self.mean
        self.squares += squares + np.square(delta) * (self.count * len(values) / total)
        self.mean += delta * (len(values) / total)
        self.count = total

    def deviation_of_all(self) -> float:
        """The standard deviation of all values from the mean of all."""
        within = float(self.squares.sum()) / (self.count * self.columns)
        return math.sqrt(within + float(np.square(self.mean - self.mean.mean()).mean()))

    def by_feature(self) -> dict[str, list[float]]:
        """min, max, mean and std of each column."""
        deviation = np.sqrt(self.squares / self.count)
        found: dict[str, Any] = {"min": self.low, "max": self.high, "mean": self.mean, "std": deviation}
        return {name: values.tolist() for name, values in found.items()}


def _counted(counts: dict[int, int], block: Array) -> dict[int, int] | None:
    """Counts with those of some more rows; None where there are too many classes."""
    values, numbers = np.unique(block, return_counts=True)
    for value, number in zip(values.tolist(), numbers.tolist(), strict=True):
        counts[value] = counts.get(value, 0) + number
    return counts if len(counts) <= _MAX_COUNTS else None
