"""Convolutions of one row, transposed convolutions, embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..windows import Floats, Window, conv2d, pair
from .base import Layer, LayerModel, Shape, with_bias
from .core import CORE
from .shape import SHAPE

if TYPE_CHECKING:
    import torch


def one_row(layer: Layer) -> Layer:
    """The conv2d that a conv1d is."""
    fields = {key: (1, layer[key]) for key in ("kernel", "stride", "dilation") if key in layer}
    padding = layer.get("padding", "valid")
    return (
        layer
        | fields
        | {"type": "conv2d", "padding": padding if isinstance(padding, str) else [[0, 0], padding]}
    )


def _one_row_output(layer: Layer, shapes: Sequence[Shape]) -> Shape:
    return CORE["conv2d"].output(one_row(layer), [(1, *shapes[0])])[1:]


def _torch_one_row(
    layer: Layer, weights: Mapping[str, torch.Tensor], xs: Sequence[torch.Tensor]
) -> torch.Tensor:
    """PyTorch's own conv1d; what lies around the sequence is padded beforehand."""
    from torch.nn import functional

    (x,) = xs
    window = Window.of_layer(one_row(layer), (1, *x.shape[1:]))
    needed = (window.output[1] - 1) * window.stride[1] + (window.taps[1] - 1) * window.dilation[1] + 1
    before = window.padding[1]
    padded = functional.pad(x.permute(0, 2, 1), (before, needed - window.input[1] - before))
    kernel = weights["kernel"].permute(2, 1, 0).contiguous()
    y = functional.conv1d(
        padded, kernel, weights.get("bias"), window.stride[1], 0, window.dilation[1], window.groups
    )
    return y.permute(0, 2, 1)


def _pool_of_one_row(model: LayerModel, kind: str) -> LayerModel:
    """A pooling over sequences from that over images."""

    def as_image(layer: Layer) -> Layer:
        fields = {key: (1, layer[key]) for key in ("size", "stride") if layer.get(key) is not None}
        padding = layer.get("padding", "valid")
        return (
            layer
            | fields
            | {"type": kind, "padding": padding if isinstance(padding, str) else [[0, 0], padding]}
        )

    whole = kind.startswith("global")
    return LayerModel(
        output=lambda layer, shapes: model.output(as_image(layer), [(1, *shapes[0])])[0 if whole else 1 :],
        numpy=lambda layer, w, xs: _first_row(model.numpy(as_image(layer), w, [xs[0][:, None]]), whole),
        torch=lambda layer, w, xs: _first_row(model.torch(as_image(layer), w, [xs[0][:, None]]), whole),
    )


def _first_row(y: Any, whole: bool) -> Any:
    return y if whole else y[:, 0]


def transposed(layer: Layer, shape: Sequence[int]) -> Window:
    """A window at each pixel of the input; sizes as TensorFlow's, or PyTorch's where padding is explicit."""
    kernel, stride = pair(layer["kernel"]), pair(layer.get("stride", 1))
    dilation, padding = pair(layer.get("dilation", 1)), layer.get("padding", "valid")
    before, under = [0, 0], [0, 0]
    for axis in (0, 1):
        extent, length = (kernel[axis] - 1) * dilation[axis] + 1, shape[axis]
        if padding == "same":
            under[axis], before[axis] = length * stride[axis], max(extent - stride[axis], 0) // 2
        elif padding == "valid":
            under[axis] = length * stride[axis] + max(extent - stride[axis], 0)
        else:
            before[axis] = padding[axis][0]
            under[axis] = (length - 1) * stride[axis] + extent - sum(padding[axis])
    return Window(kernel, stride, dilation, pair(before), pair(under), pair(shape), transposed=True)


def _torch_transposed(
    layer: Layer, weights: Mapping[str, torch.Tensor], xs: Sequence[torch.Tensor]
) -> torch.Tensor:
    """All that the kernels touch, of which the window's input is cut; where that is more, only the bias lies there."""
    from torch.nn import functional

    (x,) = xs
    window = transposed(layer, x.shape[1:])
    kernel = weights["kernel"].permute(2, 3, 0, 1).contiguous()
    y = functional.conv_transpose2d(
        x.permute(0, 3, 1, 2), kernel, None, window.stride, dilation=window.dilation
    )
    edges = [window.padding[axis] + window.input[axis] - y.shape[2 + axis] for axis in (0, 1)]
    y = functional.pad(y, (-window.padding[1], edges[1], -window.padding[0], edges[0]))
    return y.permute(0, 2, 3, 1) + weights.get("bias", 0)


def _kernel(layer: Layer, taps: Sequence[int], shapes: Sequence[Shape]) -> dict[str, Shape]:
    return with_bias(layer, (*taps, shapes[0][-1] // layer.get("groups", 1), layer["filters"]))


def _numpy_one_row(layer: Layer, weights: Mapping[str, Floats], xs: Sequence[Floats]) -> Floats:
    image = xs[0][:, None]
    window = Window.of_layer(one_row(layer), image.shape[1:])
    return conv2d(image, weights["kernel"][None], window)[:, 0] + weights.get("bias", np.zeros(1))


def _torch_embedding(
    _layer: Layer, weights: Mapping[str, torch.Tensor], xs: Sequence[torch.Tensor]
) -> torch.Tensor:
    from torch.nn import functional

    return functional.embedding(xs[0].long(), weights["kernel"])


LINEAR: dict[str, LayerModel] = {
    "conv1d": LayerModel(
        output=_one_row_output,
        numpy=_numpy_one_row,
        torch=_torch_one_row,
        weights=lambda layer, shapes: _kernel(layer, (layer["kernel"],), shapes),
    ),
    "conv2d_transpose": LayerModel(
        output=lambda layer, shapes: (*transposed(layer, shapes[0]).input, layer["filters"]),
        numpy=lambda layer, w, xs: (
            conv2d(xs[0], w["kernel"], transposed(layer, xs[0].shape[1:3])) + w.get("bias", 0)
        ),
        torch=_torch_transposed,
        weights=lambda layer, shapes: _kernel(layer, pair(layer["kernel"]), shapes),
    ),
    **{
        kind.replace("2d", "1d"): _pool_of_one_row({**CORE, **SHAPE}[kind], kind)
        for kind in ("max_pool2d", "avg_pool2d", "global_max_pool2d", "global_avg_pool2d")
    },
    "embedding": LayerModel(
        output=lambda layer, shapes: (shapes[0][0], layer["units"]),
        numpy=lambda _, w, xs: w["kernel"][xs[0].astype(int)],
        torch=_torch_embedding,
        weights=lambda layer, _: {"kernel": (layer["vocabulary"], layer["units"])},
    ),
}
