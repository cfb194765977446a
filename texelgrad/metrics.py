"""Curves from the bytes of metric chunks, and their reduction to fewer points that keeps every spike. No queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Steps = NDArray[np.uint32]
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Points of one key, by step."""

    steps: Steps
    values: Values


@dataclass(frozen=True)
class Piece:
    """The bytes of one metric chunk; points after step `cut` don't count."""

    keys: tuple[str, ...]
    steps: bytes
    values: bytes
    cut: int | None = None

    def decode(self) -> tuple[Steps, Values]:
        """Steps [n] and values [n, keys]."""
        steps = np.frombuffer(self.steps, "<u4")
        values = np.frombuffer(self.values, "<f8").reshape(len(steps), len(self.keys))
        if self.cut is not None:
            kept = steps <= self.cut
            steps, values = steps[kept], values[kept]
        return steps, values


def assemble(pieces: Iterable[Piece], keys: Sequence[str] | None = None) -> dict[str, Curve]:
    """Join pieces in their order to one curve a key, of the `keys` asked for or of all."""
    parts: dict[str, list[tuple[Steps, Values]]] = {}
    for piece in pieces:
        steps, values = piece.decode()
        for column, key in enumerate(piece.keys):
            if (keys is None or key in keys) and len(steps):
                parts.setdefault(key, []).append((steps, values[:, column]))
    return {
        key: Curve(
            np.concatenate([steps for steps, _ in found]), np.concatenate([values for _, values in found])
        )
        for key, found in parts.items()
    }


def downsample(curve: Curve, max_points: int) -> Curve:
    """At most `max_points` (at least 8) of the curve's own points: of each stretch the smallest and the largest.

    The first and the last point stay, and of each stretch with a NaN its first one. Infinities are extremes already.
    """
    total = len(curve.steps)
    if total <= max_points:
        return curve
    has_nan = bool(np.isnan(curve.values).any())
    stretches = (max_points - 2) // (3 if has_nan else 2)
    bounds = np.linspace(1, total - 1, stretches + 1).astype(np.int64)
    kept = {0, total - 1}
    for start, stop in pairwise(bounds.tolist()):
        if start == stop:
            continue
        part = curve.values[start:stop]
        nans = np.isnan(part)
        if nans.any():
            kept.add(start + int(np.argmax(nans)))
        if not nans.all():
            kept.add(start + int(np.nanargmin(part)))
            kept.add(start + int(np.nanargmax(part)))
    index = np.array(sorted(kept))
    return Curve(curve.steps[index], curve.values[index])
