"""Average and global pooling, layers that move elements, products and concatenations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..windows import Floats, Window, pair
from .base import Layer, LayerModel, Shape

if TYPE_CHECKING:
    import torch


def _avg_pool2d(layer: Layer, x: Floats) -> Floats:
    window = Window.of_layer(layer, x.shape[1:])
    return window.read(x).sum(axis=(3, 4)) / window.read(np.ones_like(x)).sum(axis=(3, 4))


def _torch_avg_pool2d(layer: Layer, x: torch.Tensor) -> torch.Tensor:
    """Sums of what is inside, over how much is: PyTorch's own has no uneven padding."""
    import torch
    from torch.nn import functional

    window = Window.of_layer(layer, x.shape[1:])
    after = [
        max(
            0,
            (window.output[i] - 1) * window.stride[i] + window.taps[i] - window.input[i] - window.padding[i],
        )
        for i in (0, 1)
    ]

    def sums(values: torch.Tensor) -> torch.Tensor:
        edges = (window.padding[1], after[1], window.padding[0], after[0])
        padded = functional.pad(values.permute(0, 3, 1, 2), edges)
        pooled = functional.avg_pool2d(padded, window.taps, stride=window.stride) * math.prod(window.taps)
        return pooled[:, :, : window.output[0], : window.output[1]].permute(0, 2, 3, 1)

    return sums(x) / sums(torch.ones_like(x))


def sides(value: Any) -> list[list[int]]:
    """[[above, below], [left, right]]; a number stands for all four."""
    return [[value, value], [value, value]] if isinstance(value, int) else value


def _padded(layer: Layer, shape: Shape) -> Shape:
    (above, below), (left, right) = sides(layer["padding"])
    return shape[0] + above + below, shape[1] + left + right, shape[2]


def _torch_pad(layer: Layer, x: torch.Tensor) -> torch.Tensor:
    from torch.nn import functional

    (above, below), (left, right) = sides(layer["padding"])
    return functional.pad(x, (0, 0, left, right, above, below))


def _crop(layer: Layer, x: Any) -> Any:
    (above, below), (left, right) = sides(layer["cropping"])
    return x[:, above : x.shape[1] - below, left : x.shape[2] - right]


def _cropped(layer: Layer, shape: Shape) -> Shape:
    (above, below), (left, right) = sides(layer["cropping"])
    return shape[0] - above - below, shape[1] - left - right, shape[2]


def _upsampled(layer: Layer, shape: Shape) -> Shape:
    rows, columns = pair(layer["size"])
    return shape[0] * rows, shape[1] * columns, shape[2]


def _torch_upsample(layer: Layer, x: torch.Tensor) -> torch.Tensor:
    rows, columns = pair(layer["size"])
    return x.repeat_interleave(rows, 1).repeat_interleave(columns, 2)


def _concatenated(_layer: Layer, shapes: Sequence[Shape]) -> Shape:
    return (*shapes[0][:-1], sum(shape[-1] for shape in shapes))


def _torch_concat(xs: Sequence[torch.Tensor]) -> torch.Tensor:
    import torch

    return torch.cat(list(xs), dim=-1)


SHAPE: dict[str, LayerModel] = {
    "avg_pool2d": LayerModel(
        output=lambda layer, shapes: (*Window.of_layer(layer, shapes[0]).output, shapes[0][-1]),
        numpy=lambda layer, _, xs: _avg_pool2d(layer, xs[0]),
        torch=lambda layer, _, xs: _torch_avg_pool2d(layer, xs[0]),
    ),
    "global_avg_pool2d": LayerModel(
        output=lambda _, shapes: shapes[0][-1:],
        numpy=lambda _, __, xs: xs[0].mean(axis=(1, 2)),
        torch=lambda _, __, xs: xs[0].mean(dim=(1, 2)),
    ),
    "global_max_pool2d": LayerModel(
        output=lambda _, shapes: shapes[0][-1:],
        numpy=lambda _, __, xs: xs[0].max(axis=(1, 2)),
        torch=lambda _, __, xs: xs[0].flatten(1, 2).max(dim=1).values,
    ),
    "reshape": LayerModel(
        output=lambda layer, _: tuple(layer["shape"]),
        numpy=lambda layer, _, xs: xs[0].reshape(len(xs[0]), *layer["shape"]),
        torch=lambda layer, _, xs: xs[0].reshape(len(xs[0]), *layer["shape"]),
    ),
    "upsample2d": LayerModel(
        output=lambda layer, shapes: _upsampled(layer, shapes[0]),
        numpy=lambda layer, _, xs: xs[0].repeat(pair(layer["size"])[0], 1).repeat(pair(layer["size"])[1], 2),
        torch=lambda layer, _, xs: _torch_upsample(layer, xs[0]),
    ),
    "zero_pad2d": LayerModel(
        output=lambda layer, shapes: _padded(layer, shapes[0]),
        numpy=lambda layer, _, xs: np.pad(xs[0], ((0, 0), *map(tuple, sides(layer["padding"])), (0, 0))),
        torch=lambda layer, _, xs: _torch_pad(layer, xs[0]),
    ),
    "crop2d": LayerModel(
        output=lambda layer, shapes: _cropped(layer, shapes[0]),
        numpy=lambda layer, _, xs: _crop(layer, xs[0]),
        torch=lambda layer, _, xs: _crop(layer, xs[0]),
    ),
    "multiply": LayerModel(
        output=lambda _, shapes: shapes[0],
        numpy=lambda _, __, xs: math.prod(xs[1:], start=xs[0]),
        torch=lambda _, __, xs: math.prod(xs[1:], start=xs[0]),
    ),
    "concat": LayerModel(
        output=_concatenated,
        numpy=lambda _, __, xs: np.concatenate(xs, axis=-1),
        torch=lambda _, __, xs: _torch_concat(xs),
    ),
}  # fmt: skip
