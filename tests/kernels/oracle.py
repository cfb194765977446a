"""The engine's primitive ops in float64 NumPy, each value with a bound of what float32 kernels may be off by.

Independent of browser_runtime/reference. A bound counts the roundings of the kernel's own order of operations, so that it
is far below the `(256 + K/256) 2^-24 sum|a||b|` that the kernels' headers promise, and grows with the sum of absolute values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tolerances import DIVISION_MAX_ULP, FLOAT32_ROUNDING, MATH_MAX_ULP, SQRT_MAX_ULP
from . import windows
from .windows import Floats, Window

U = FLOAT32_ROUNDING
MATH = 2 * MATH_MAX_ULP * U  # an ULP is up to 2 U of the value
DIVISION = 2 * DIVISION_MAX_ULP * U
SQRT = 2 * SQRT_MAX_ULP * U
TINY = 2.0**-126  # denormals may be flushed to zero


@dataclass(frozen=True)
class Approx:
    """A float64 value, and how far a kernel's float32 may be from it, element by element."""

    value: Floats
    error: Floats

    def plus_roundings(self, count: float) -> Approx:
        """The same after `count` more roundings of the value."""
        return Approx(self.value, self.error * (1 + count * U) + count * U * np.abs(self.value) + TINY)

    def times(self, factor: float) -> Approx:
        """Multiplied by a float32 rounding of `factor`."""
        return Approx(self.value * factor, self.error * abs(factor)).plus_roundings(2)


def exact(value: Any) -> Approx:
    """What a kernel read: its float32 bits are the truth."""
    value = np.asarray(value, np.float64)
    return Approx(value, np.zeros_like(value))


def blocked(terms: int, at_once: int) -> int:
    """Additions that a term passes through: in texels of `at_once` terms, blocks of 256 terms, then the blocks."""
    return -(-min(terms, 256) // at_once) + -(-terms // 256) + at_once


def _product(a: Approx, b: Approx, roundings: int) -> Approx:
    size_a, size_b = np.abs(a.value) + a.error, np.abs(b.value)
    error = roundings * U * (size_a @ (size_b + b.error)) + a.error @ size_b + size_a @ b.error
    return Approx(a.value @ b.value, error + a.value.shape[1] * TINY)


# ---- layers: a parameter is [K + 1, N], its bias the last row ------------------------------------------------------


def affine(x: Approx, w: Floats, lanes: int) -> Approx:
    """X W + b, 4 terms at once of the `lanes` that a row of X takes with its padding."""
    product = _product(x, exact(w[:-1]), blocked(lanes, 4) + 1)
    size = np.abs(x.value) @ np.abs(w[:-1]) + product.error + np.abs(w[-1])
    return Approx(product.value + w[-1], product.error + U * size)


def affine_grad_input(dy: Approx, w: Floats) -> Approx:
    """dY W^T, 4 terms at once."""
    return _product(dy, exact(w[:-1].T), blocked(dy.value.shape[1], 4) + 1)


def affine_grad_weights(x: Approx, dy: Approx) -> Approx:
    """X^T dY with the column sums of dY below, one sample at a time."""
    rows = len(x.value)
    extended = Approx(np.hstack([x.value, np.ones((rows, 1))]).T, np.hstack([x.error, np.zeros((rows, 1))]).T)
    return _product(extended, dy, blocked(rows, 1) + 1)


# ---- convolution and pooling: batches are [M, pixels * channels], a kernel [KH KW C + 1, F] ---------------------------


def _images(x: Floats, size: windows.Pair) -> Floats:
    """[M, H, W, C]."""
    return x.reshape(len(x), *size, -1)


def _matrix(x: Floats) -> Floats:
    return x.reshape(len(x), -1)


def _texels(channels: int) -> int:
    return -(-channels // 4)


def _additions(window: Window, channels: int, filters: int, summed: int) -> int:
    """Additions that a sum over `summed` channels of a tap takes: 4 at once, unless groups begin in the middle of texels."""
    whole = channels // window.groups % 4 == 0 and filters // window.groups % 4 == 0
    return _texels(summed) if window.groups == 1 or whole else summed


def im2col(x: Floats, window: Window) -> Approx:
    """What each window holds: a convolution with one filter for each of its values, which it copies."""
    images = _images(x, window.reads)
    values = np.eye(math.prod(window.taps) * images.shape[3])
    return exact(_matrix(windows.conv2d(images, values.reshape(*window.taps, -1, len(values)), window)))


def conv2d(x: Floats, w: Floats, window: Window, *, patches: bool = False) -> Approx:
    """X * W + b: channels of a group, summed over the taps of a kernel row, then over kernel rows; of `patches`, all at once."""
    images, kernel, bias = _images(x, window.reads), w[:-1].reshape(*window.taps, -1, w.shape[1]), w[-1]
    size = windows.conv2d(np.abs(images), np.abs(kernel), window)
    a_tap = _additions(window, images.shape[3], w.shape[1], kernel.shape[2])
    roundings = 3 + (_texels(len(w) - 1) + 1 if patches else window.taps[1] * a_tap + window.taps[0])
    error = roundings * U * size + U * (size + np.abs(bias)) + len(w) * TINY
    return Approx(_matrix(windows.conv2d(images, kernel, window) + bias), _matrix(error))


def conv2d_grad_input(dy: Floats, w: Floats, window: Window) -> Approx:
    """Where each DY laid the kernel down: filters of a group, over the taps of a kernel row, then over kernel rows."""
    gradients, kernel = _images(dy, window.makes), w[:-1].reshape(*window.taps, -1, w.shape[1])
    size = windows.conv2d_grad_input(np.abs(gradients), np.abs(kernel), window)
    filters = w.shape[1] // window.groups
    a_tap = _additions(window, kernel.shape[2] * window.groups, w.shape[1], filters)
    roundings = 4 + window.taps[1] * a_tap + window.taps[0]
    value = windows.conv2d_grad_input(gradients, kernel, window)
    return Approx(_matrix(value), _matrix(roundings * U * size + w.size * TINY))


def conv2d_grad_weights(x: Floats, dy: Floats, window: Window, splits: int) -> Approx:
    """What each tap saw times DY, sums of DY below: lines of 4 samples, then the lines of a part, then the parts."""
    images, gradients = _images(x, window.reads), _images(dy, window.makes)

    def sums(of_x: Floats, of_dy: Floats) -> Floats:
        kernel = windows.conv2d_grad_weights(of_x, of_dy, window)
        return np.vstack([kernel.reshape(-1, kernel.shape[-1]), of_dy.sum(axis=(0, 1, 2))])

    size = sums(np.abs(images), np.abs(gradients))
    # the bias of a transposed convolution sums all that lies under its windows
    height, width = window.input if window.transposed else window.output
    lines = -(-len(x) // 4) * max(height, window.output[0])
    roundings = 1 + 4 * max(width, window.output[1]) + -(-lines // splits) + splits
    return Approx(sums(images, gradients), roundings * U * size + gradients.size * TINY)


def max_pool2d(x: Floats, window: Window) -> Approx:
    """The largest of each window, exactly."""
    return exact(_matrix(windows.max_pool2d(_images(x, window.input), window)))


def max_pool2d_grad(x: Floats, dy: Floats, window: Window) -> Approx:
    """The gradients of the windows whose first largest element this is."""
    images, gradients = _images(x, window.input), _images(dy, window.output)
    meets = [-(-taps // stride) for taps, stride in zip(window.taps, window.stride, strict=True)]
    size = windows.max_pool2d_grad(images, np.abs(gradients), window)
    value = windows.max_pool2d_grad(images, gradients, window)
    return Approx(_matrix(value), _matrix((meets[0] * meets[1] - 1) * U * size))


# ---- targets --------------------------------------------------------------------------------------------------------


def targets(target: Floats, outputs: int, labels: str) -> Floats:
    """A value for each output; class numbers become one-hot rows."""
    return np.eye(outputs)[target[:, 0].astype(int)] if labels == "index" else target
