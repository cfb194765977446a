"""Sums and means of windows, ops that move elements, products."""

from __future__ import annotations

import math

import numpy as np

from ..oracle import DIVISION, TINY, Approx, Floats, U, exact
from ..windows import Window
from .base import OpRun, Oracle


def _matrix(x: Floats) -> Floats:
    return x.reshape(len(x), -1)


def _counts(window: Window) -> Floats:
    """[OH, OW, 1] elements that are no padding."""
    return window.read(np.ones((1, *window.input, 1))).sum(axis=(3, 4))[0]


def _gathered(run: OpRun, key: str, mean: bool) -> Approx:
    """A row of the window after another; then the division."""
    window = Window.of_attrs(run.attrs)
    x = run.read[key].reshape(len(run.read[key]), *window.input, -1)
    value, size = (window.read(part).sum(axis=(3, 4)) for part in (x, np.abs(x)))
    count = _counts(window) if mean else 1.0
    error = (sum(window.taps) - 1) * U * size / count + (DIVISION if mean else 0) * np.abs(value) / count
    return Approx(_matrix(value / count), _matrix(error) + TINY)


def _spread(run: OpRun, key: str, mean: bool) -> Approx:
    """Each window's value, or its share, added up."""
    window = Window.of_attrs(run.attrs)
    y = run.read[key].reshape(len(run.read[key]), *window.output, -1)
    share = y / _counts(window) if mean else y

    def back(values: Floats) -> Floats:
        seen = np.broadcast_to(
            values[:, :, :, None, None, :], (*values.shape[:3], *window.taps, values.shape[3])
        )
        return window.add_back(np.ascontiguousarray(seen))

    meets = math.prod(-(-taps // stride) for taps, stride in zip(window.taps, window.stride, strict=True))
    error = ((meets - 1) * U + (DIVISION if mean else 0)) * back(np.abs(share))
    return Approx(_matrix(back(share)), _matrix(error) + TINY)


def _shift2d(run: OpRun) -> dict[str, Approx]:
    (height, width, channels), (rows, columns) = run.attrs["input"], run.attrs["output"][:2]
    x = run.read["x"].reshape(-1, height, width, channels)
    above, left = (-int(lines) for lines in run.attrs["offset"])
    edges = (
        (0, 0),
        (max(0, above), max(0, rows - height - above)),
        (max(0, left), max(0, columns - width - left)),
        (0, 0),
    )
    top, side = max(0, -above), max(0, -left)
    moved = np.pad(x, edges)[:, top : top + rows, side : side + columns]
    return {"y": exact(_matrix(moved))}


def _pixels(run: OpRun, key: str) -> Floats:
    """[M, pixels, channels] of a tensor as it is held."""
    x = run.read[key]
    return x.reshape(len(x), -1, run.layouts[key]["channels"])


def _multiply(run: OpRun) -> dict[str, Approx]:
    a, b = run.inputs["a"], run.inputs["b"]
    return {"y": Approx(a.value * b.value, np.zeros_like(a.value)).plus_roundings(1)}


SHAPE: dict[str, Oracle] = {
    "avg_pool2d": lambda run: {"y": _gathered(run, "x", mean=True)},
    "avg_pool2d_grad": lambda run: {"dx": _spread(run, "dy", mean=True)},
    "upsample2d": lambda run: {"y": _spread(run, "x", mean=False)},
    "upsample2d_grad": lambda run: {"dx": _gathered(run, "dy", mean=False)},
    "reshape": lambda run: {"y": exact(run.read["x"])},
    "shift2d": _shift2d,
    "concat": lambda run: {
        "y": exact(_matrix(np.concatenate([_pixels(run, "a"), _pixels(run, "b")], axis=2)))
    },
    "slice_channels": lambda run: {
        "y": exact(
            _matrix(_pixels(run, "x")[:, :, run.attrs["first"] : run.attrs["first"] + run.attrs["count"]])
        )
    },
    "multiply": _multiply,
}
