"""Losses of each row, and the gradient of their mean, with targets as the loss takes them: smoothed and weighted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..curves import sigmoid
from ..oracle import DIVISION, MATH, TINY, Approx, Floats, U, blocked, targets
from .base import OpRun, Oracle

Rows = tuple[Approx, Approx]
"""Losses [M], and their gradients [M, N] before the mean over the batch."""


def _smoothed(y: Floats, count: int, run: OpRun) -> Approx:
    """(1 - s) y + s / count: a product and a sum of what is not negative, each constant rounded once."""
    smoothing = run.attrs["smoothing"]
    if not smoothing:
        return Approx(y, np.zeros_like(y))
    value = (1 - smoothing) * y + smoothing / count
    return Approx(value, 6 * U * value)


def _weighted(y: Approx, run: OpRun) -> Approx:
    if "weights" not in run.inputs:
        return y
    weights = run.read["weights"]
    return Approx(y.value * weights, y.error * weights).plus_roundings(1)


def _bce(z: Approx, y: Floats, run: OpRun) -> Rows:
    columns = z.value.shape[1]
    yes, no = _weighted(_smoothed(y, 2, run), run), _smoothed(1 - y, 2, run)
    no = Approx(no.value, no.error + U * no.value)  # of 1 - y
    e = np.exp(-np.abs(z.value))
    down, up = np.maximum(-z.value, 0), np.maximum(z.value, 0)
    linear = yes.value * down + no.value * up
    both = yes.value + no.value
    p, q = sigmoid(z.value), sigmoid(-z.value)
    slope = no.value * p - yes.value * q
    error = (
        (np.abs(slope) + both * z.error) * z.error
        + yes.error * (down + np.log1p(e)) + no.error * (up + np.log1p(e))
        + 5 * U * linear + 2 * (MATH + U) * both * (np.log1p(e) + e) + TINY
    )  # fmt: skip
    rows = Approx((linear + both * np.log1p(e)).mean(axis=1), error.mean(axis=1)).plus_roundings(columns + 3)
    size = no.value * p + yes.value * q
    grad_error = (
        both * p * q * np.exp(z.error) * z.error + no.error * p + yes.error * q
        + size * (MATH + DIVISION + 2 * U) + U * np.abs(slope)
    )  # fmt: skip
    return rows, Approx(slope / columns, grad_error / columns).plus_roundings(3)


def _mse(z: Approx, y: Floats, _: OpRun) -> Rows:
    columns = z.value.shape[1]
    d = z.value - y
    d_error = z.error + U * np.abs(d)
    square = Approx(d**2, (2 * np.abs(d) + d_error) * d_error)
    rows = Approx(square.value.mean(axis=1), square.error.mean(axis=1)).plus_roundings(columns + 3)
    return rows, Approx(2 * d / columns, 2 * d_error / columns).plus_roundings(4)


def _mae(z: Approx, y: Floats, _: OpRun) -> Rows:
    columns = z.value.shape[1]
    d = z.value - y
    d_error = z.error + U * np.abs(d)
    rows = Approx(np.abs(d).mean(axis=1), d_error.mean(axis=1)).plus_roundings(columns + 3)
    # on which side of 0 a difference within its error lies is the kernel's to say
    unsure = np.where((d_error > 0) & (np.abs(d) <= d_error), 2.0, 0.0)
    return rows, Approx(np.sign(d) / columns, unsure / columns).plus_roundings(3)


def _huber(z: Approx, y: Floats, run: OpRun) -> Rows:
    columns, delta = z.value.shape[1], float(np.float32(run.attrs["delta"]))
    d = z.value - y
    d_error = z.error + U * np.abs(d)
    size = np.abs(d)
    value = np.where(size <= delta, d**2 / 2, delta * (size - delta / 2))
    # the slope is at most delta, and both branches meet where it is
    error = np.minimum(size + d_error, delta) * d_error + 4 * U * (value + delta * size)
    rows = Approx(value.mean(axis=1), error.mean(axis=1)).plus_roundings(columns + 3)
    return rows, Approx(np.clip(d, -delta, delta) / columns, d_error / columns).plus_roundings(3)


def _hinge(z: Approx, y: Floats, _: OpRun) -> Rows:
    columns = z.value.shape[1]
    side = np.where(y > 0.5, 1.0, -1.0)
    margin = 1 - side * z.value
    margin_error = z.error + U * np.abs(margin)
    lost = np.maximum(margin, 0)
    rows = Approx(lost.mean(axis=1), np.where(margin > -margin_error, margin_error, 0).mean(axis=1))
    unsure = (margin_error > 0) & (np.abs(margin) <= margin_error)
    grad = Approx(np.where(margin > 0, -side, 0) / columns, np.where(unsure, 1.0, 0.0) / columns)
    return rows.plus_roundings(columns + 3), grad.plus_roundings(3)


def _softmax_cross_entropy(z: Approx, given: Floats, run: OpRun) -> Rows:
    columns = z.value.shape[1]
    target = _weighted(_smoothed(given, columns, run), run)
    y, y_error = target.value, target.error
    additions = blocked(columns, 4) + 1
    below = z.value.max(axis=1, keepdims=True) - z.value
    e = np.exp(-below)
    e_error = e * (U * below + MATH) + TINY
    total = e.sum(axis=1, keepdims=True)
    total_error = e_error.sum(axis=1, keepdims=True) / total + additions * U  # relative
    weight = y.sum(axis=1, keepdims=True)
    weight_error = y_error.sum(axis=1, keepdims=True) + np.where(y_error.any(), additions * U * weight, 0)
    p = e / total
    moved = z.error * np.exp(2 * z.error.max(initial=0))
    log_total, toward = np.log(total), (y * below).sum(axis=1, keepdims=True)
    loss_error = (
        weight * (total_error + (MATH + (additions + 1) * U) * log_total) + weight_error * log_total
        + (additions + 2) * U * toward + (y_error * below).sum(axis=1, keepdims=True)
        + ((weight * p + y) * moved).sum(axis=1, keepdims=True)
    )  # fmt: skip
    rows = Approx((weight * log_total + toward)[:, 0], loss_error[:, 0]).plus_roundings(1)
    softmax = weight * p
    grad_error = (
        softmax * (U * below + MATH + total_error + DIVISION + (additions + 2) * U)
        + softmax * (moved + (p * moved).sum(axis=1, keepdims=True)) + weight_error * p + y_error
    )  # fmt: skip
    return rows, Approx(softmax - y, grad_error).plus_roundings(1)


_LOSSES: dict[str, Callable[[Approx, Floats, OpRun], Rows]] = {
    "bce": _bce,
    "softmax_cross_entropy": _softmax_cross_entropy,
    "mse": _mse,
    "mae": _mae,
    "huber": _huber,
    "hinge": _hinge,
}


def _both(run: OpRun) -> Rows:
    z = run.inputs["z"]
    y = targets(run.read["target"], z.value.shape[1], run.attrs["labels"])
    rows, grad = _LOSSES[run.attrs["fn"]](z, y, run)
    return rows.times(1 / len(y)), grad.times(1 / len(y))


LOSSES: dict[str, Oracle] = {
    "loss": lambda run: {"loss": _both(run)[0]},
    "loss_grad": lambda run: {"dz": _both(run)[1]},
}
