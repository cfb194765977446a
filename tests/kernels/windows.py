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
    """Where a window of `taps` stands; `padding` is that before the first row and column.

    Windows slide over `input` and there are `output` of them. What a convolution reads lies under them, and it makes a pixel of each;
    a transposed one reads a pixel for each and makes what lies under them.
    """

    taps: Pair
    stride: Pair
    dilation: Pair
    padding: Pair
    input: Pair
    output: Pair
    groups: int = 1
    transposed: bool = False

    @property
    def reads(self) -> Pair:
        """Height and width of what a convolution reads."""
        return self.output if self.transposed else self.input

    @property
    def makes(self) -> Pair:
        """Height and width of what it makes."""
        return self.input if self.transposed else self.output

    @classmethod
    def of_attrs(cls, attrs: dict[str, Any]) -> Window:
        """From the attributes of an op of the engine's graph, whose input is what is read."""
        transposed = attrs.get("transposed", False)
        ends = ("output", "input") if transposed else ("input", "output")
        found = (pair(attrs[key]) for key in ("taps", "stride", "dilation", "padding", *ends))
        return cls(*found, groups=attrs.get("groups", 1), transposed=transposed)

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
        groups = layer.get("groups", 1)
        return cls(taps, stride, dilation, pair(before), pair(shape), pair(output), groups)

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
    """What is read [M, H, W, C] and [KH, KW, C / groups, F] -> what is made [M, OH, OW, F], without bias."""

    def of_group(x: Floats, kernel: Floats) -> Floats:
        if window.transposed:
            return window.add_back(np.tensordot(x, kernel, (3, 2)))
        return np.tensordot(window.read(x), kernel, 3)

    return np.concatenate(
        [of_group(*parts) for parts in zip(_split(x, window), _split(kernel, window), strict=True)], axis=-1
    )


def conv2d_grad_input(dy: Floats, kernel: Floats, window: Window) -> Floats:
    """[M, H, W, C]."""

    def of_group(dy: Floats, kernel: Floats) -> Floats:
        if window.transposed:
            return np.tensordot(window.read(dy), kernel, ((3, 4, 5), (0, 1, 3)))
        return window.add_back(np.tensordot(dy, kernel, (3, 3)))

    return np.concatenate(
        [of_group(*parts) for parts in zip(_split(dy, window), _split(kernel, window), strict=True)], axis=-1
    )


def conv2d_grad_weights(x: Floats, dy: Floats, window: Window) -> Floats:
    """[KH, KW, C / groups, F]."""

    def of_group(x: Floats, dy: Floats) -> Floats:
        if window.transposed:
            return np.tensordot(window.read(dy), x, ((0, 1, 2), (0, 1, 2))).swapaxes(2, 3)
        return np.tensordot(window.read(x), dy, ((0, 1, 2), (0, 1, 2)))

    return np.concatenate(
        [of_group(*parts) for parts in zip(_split(x, window), _split(dy, window), strict=True)], axis=-1
    )


def _split(values: Floats, window: Window) -> list[Floats]:
    """Channels or filters of each group."""
    return np.split(values, window.groups, axis=-1)


def max_pool2d(x: Floats, window: Window) -> Floats:
    """[M, OH, OW, C]; NaN wins."""
    return window.read(x, -np.inf).max(axis=(3, 4))


def max_pool2d_grad(x: Floats, dy: Floats, window: Window) -> Floats:
    """[M, H, W, C]: the first largest element of each window, row by row, takes its gradient."""
    seen = window.read(x, -np.inf)
    flat = seen.reshape(*seen.shape[:3], -1, seen.shape[-1])
    first = np.arange(flat.shape[3])[:, None] == flat.argmax(axis=3)[:, :, :, None, :]
    return window.add_back(np.where(first, dy[:, :, :, None, :], 0.0).reshape(seen.shape))
