"""Sliding windows in NumPy: what convolution and pooling read, and where their gradients go. Independent of the engine's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Pair = tuple[int, int]


def pair(value: int | Sequence[int]) -> Pair:
    """Rows and columns; a number stands for both."""
    return (value, value) if isinstance(value, int) else (value[0], value[1])


@dataclass(frozen=True)
class Window:
    """Where a window of `taps` stands; `padding` is that before the first row and column."""

    taps: Pair
    stride: Pair
    dilation: Pair
    padding: Pair
    input: Pair
    output: Pair

    @classmethod
    def of_attrs(cls, attrs: dict[str, Any]) -> Window:
        """From the attributes of an op of the engine's graph."""
        return cls(
            *(pair(attrs[key]) for key in ("taps", "stride", "dilation", "padding", "input", "output"))
        )

    @classmethod
    def of_layer(cls, layer: dict[str, Any], shape: Sequence[int]) -> Window:
        """From a layer of a spec and the shape of its input; `same` pads as TensorFlow does, the odd line behind."""
        taps = pair(layer["kernel"] if layer["type"] == "conv2d" else layer["size"])
        stride = pair(layer.get("stride") or (1 if layer["type"] == "conv2d" else taps))
        dilation, padding = pair(layer.get("dilation", 1)), layer.get("padding", "valid")
        before, output = [0, 0], [0, 0]
        for axis in (0, 1):
            extent, size = (taps[axis] - 1) * dilation[axis] + 1, shape[axis]
            if padding == "same":
                output[axis] = math.ceil(size / stride[axis])
                before[axis] = max(0, (output[axis] - 1) * stride[axis] + extent - size) // 2
            else:
                edges = (0, 0) if padding == "valid" else padding[axis]
                before[axis] = edges[0]
                output[axis] = (size + sum(edges) - extent) // stride[axis] + 1
        return cls(taps, stride, dilation, pair(before), pair(shape), pair(output))

    def _places(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[OH, 1, KH, 1] rows and [1, OW, 1, KW] columns that are read; one line past the end where a tap lies in the padding."""
        found: list[NDArray[np.int64]] = []
        for axis in (0, 1):
            out, tap = np.arange(self.output[axis])[:, None], np.arange(self.taps[axis])[None, :]
            place = out * self.stride[axis] + tap * self.dilation[axis] - self.padding[axis]
            found.append(np.where((place < 0) | (place >= self.input[axis]), self.input[axis], place))
        return found[0][:, None, :, None], found[1][None, :, None, :]

    def read(self, x: Floats, outside: float = 0.0) -> Floats:
        """What each window sees: [M, H, W, C] -> [M, OH, OW, KH, KW, C]."""
        padded = np.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=outside)
        return padded[:, *self._places()]

    def add_back(self, seen: Floats) -> Floats:
        """The transpose of `read`: each value is added to the place that it was read from."""
        height, width = self.input
        x = np.zeros((len(seen), height + 1, width + 1, seen.shape[-1]))
        np.add.at(x, (slice(None), *self._places()), seen)  # pyright: ignore[reportArgumentType]
        return x[:, :height, :width]


def conv2d(x: Floats, kernel: Floats, window: Window) -> Floats:
    """[M, H, W, C] and [KH, KW, C, F] -> [M, OH, OW, F], without bias."""
    return np.tensordot(window.read(x), kernel, 3)


def conv2d_grad_input(dy: Floats, kernel: Floats, window: Window) -> Floats:
    """[M, H, W, C]."""
    return window.add_back(np.tensordot(dy, kernel, (3, 3)))


def conv2d_grad_weights(x: Floats, dy: Floats, window: Window) -> Floats:
    """[KH, KW, C, F]."""
    return np.tensordot(window.read(x), dy, ((0, 1, 2), (0, 1, 2)))


def max_pool2d(x: Floats, window: Window) -> Floats:
    """[M, OH, OW, C]; NaN wins."""
    return window.read(x, -np.inf).max(axis=(3, 4))


def max_pool2d_grad(x: Floats, dy: Floats, window: Window) -> Floats:
    """[M, H, W, C]: the first largest element of each window, row by row, takes its gradient."""
    seen = window.read(x, -np.inf)
    flat = seen.reshape(*seen.shape[:3], -1, seen.shape[-1])
    first = np.arange(flat.shape[3])[:, None] == flat.argmax(axis=3)[:, :, :, None, :]
    return window.add_back(np.where(first, dy[:, :, :, None, :], 0.0).reshape(seen.shape))
