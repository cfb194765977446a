"""Dense layers, convolution, max pooling, flattening, sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..windows import Window, conv2d, max_pool2d, pair
from .base import Layer, LayerModel, with_bias

if TYPE_CHECKING:
    import torch


def _padding_behind(window: Window) -> list[int]:
    """Rows and columns that the last window reads past the end: PyTorch pads by numbers only."""
    return [
        max(0, (window.output[i] - 1) * window.stride[i] + (window.taps[i] - 1) * window.dilation[i] + 1 - window.input[i] - window.padding[i])
        for i in (0, 1)
    ]  # fmt: skip


def _torch_conv2d(
    layer: Layer, weights: Mapping[str, torch.Tensor], xs: Sequence[torch.Tensor]
) -> torch.Tensor:
    from torch.nn import functional

    (x,) = xs
    window = Window.of_layer(layer, x.shape[1:])
    after = _padding_behind(window)
    padded = functional.pad(x.permute(0, 3, 1, 2), (window.padding[1], after[1], window.padding[0], after[0]))
    kernel = weights["kernel"].permute(3, 2, 0, 1).contiguous()
    y = functional.conv2d(
        padded, kernel, weights.get("bias"), window.stride, 0, window.dilation, window.groups
    )
    return y[:, :, : window.output[0], : window.output[1]].permute(0, 2, 3, 1)


def _torch_max_pool2d(
    layer: Layer, _weights: Mapping[str, torch.Tensor], xs: Sequence[torch.Tensor]
) -> torch.Tensor:
    from torch.nn import functional

    (x,) = xs
    window = Window.of_layer(layer, x.shape[1:])
    after = _padding_behind(window)
    padded = functional.pad(
        x.permute(0, 3, 1, 2), (window.padding[1], after[1], window.padding[0], after[0]), value=-math.inf
    )
    y = functional.max_pool2d(padded, window.taps, stride=window.stride)
    return y[:, :, : window.output[0], : window.output[1]].permute(0, 2, 3, 1)


CORE: dict[str, LayerModel] = {
    "dense": LayerModel(
        output=lambda layer, _: (layer["units"],),
        numpy=lambda _, w, xs: xs[0] @ w["kernel"] + w.get("bias", 0),
        torch=lambda _, w, xs: xs[0] @ w["kernel"] + w.get("bias", 0),
        weights=lambda layer, shapes: with_bias(layer, (shapes[0][-1], layer["units"])),
    ),
    "conv2d": LayerModel(
        output=lambda layer, shapes: (*Window.of_layer(layer, shapes[0]).output, layer["filters"]),
        numpy=lambda layer, w, xs: conv2d(xs[0], w["kernel"], Window.of_layer(layer, xs[0].shape[1:])) + w.get("bias", 0),
        torch=_torch_conv2d,
        weights=lambda layer, shapes: with_bias(
            layer, (*pair(layer["kernel"]), shapes[0][-1] // layer.get("groups", 1), layer["filters"])
        ),
    ),
    "max_pool2d": LayerModel(
        output=lambda layer, shapes: (*Window.of_layer(layer, shapes[0]).output, shapes[0][-1]),
        numpy=lambda layer, _, xs: max_pool2d(xs[0], Window.of_layer(layer, xs[0].shape[1:])),
        torch=_torch_max_pool2d,
    ),
    "flatten": LayerModel(
        output=lambda _, shapes: (math.prod(shapes[0]),),
        numpy=lambda _, __, xs: xs[0].reshape(len(xs[0]), -1),
        torch=lambda _, __, xs: xs[0].flatten(1),
    ),
    "add": LayerModel(
        output=lambda _, shapes: shapes[0],
        numpy=lambda _, __, xs: sum(xs[1:], xs[0]),
        torch=lambda _, __, xs: sum(xs[1:], xs[0]),
    ),
}  # fmt: skip
