"""Layer, group and batch normalization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..windows import Floats
from .base import Layer, LayerModel, Shape

if TYPE_CHECKING:
    import torch

EPS = 1e-5
MOMENTUM = 0.1


def _eps(layer: Layer) -> float:
    return layer.get("eps", EPS)


def _normalized(x: Floats, axes: tuple[int, ...], eps: float) -> Floats:
    return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + eps)


def _layer_norm(layer: Layer, w: Mapping[str, Floats], xs: Sequence[Floats]) -> Floats:
    return _normalized(xs[0], (-1,), _eps(layer)) * w["gamma"] + w["beta"]


def _group_norm(layer: Layer, w: Mapping[str, Floats], xs: Sequence[Floats]) -> Floats:
    (x,) = xs
    groups = x.reshape(len(x), -1, layer["groups"], x.shape[-1] // layer["groups"])
    return _normalized(groups, (1, 3), _eps(layer)).reshape(x.shape) * w["gamma"] + w["beta"]


def _batch_norm(layer: Layer, w: Mapping[str, Floats], xs: Sequence[Floats]) -> Floats:
    deviation = np.sqrt(w["running_var"] + _eps(layer))
    return (xs[0] - w["running_mean"]) / deviation * w["gamma"] + w["beta"]


def _batch_norm_trained(layer: Layer, w: Mapping[str, Floats], xs: Sequence[Floats]) -> Floats:
    (x,) = xs
    if not layer.get("trainable", True):
        return _batch_norm(layer, w, xs)
    return _normalized(x, tuple(range(x.ndim - 1)), _eps(layer)) * w["gamma"] + w["beta"]


def _channels_first(x: torch.Tensor) -> torch.Tensor:
    return x.movedim(-1, 1)


def _torch_layer_norm(
    layer: Layer, w: Mapping[str, torch.Tensor], xs: Sequence[torch.Tensor]
) -> torch.Tensor:
    from torch.nn import functional

    return functional.layer_norm(xs[0], xs[0].shape[-1:], w["gamma"], w["beta"], _eps(layer))


def _torch_group_norm(
    layer: Layer, w: Mapping[str, torch.Tensor], xs: Sequence[torch.Tensor]
) -> torch.Tensor:
    from torch.nn import functional

    first = _channels_first(xs[0])
    return functional.group_norm(first, layer["groups"], w["gamma"], w["beta"], _eps(layer)).movedim(1, -1)


def _torch_batch_norm(
    layer: Layer, w: Mapping[str, torch.Tensor], xs: Sequence[torch.Tensor]
) -> torch.Tensor:
    from torch.nn import functional

    first, momentum = _channels_first(xs[0]), layer.get("momentum", MOMENTUM)
    live = layer.get("trainable", True)
    # moves the running statistics, in place
    y = functional.batch_norm(
        first, w["running_mean"], w["running_var"], w["gamma"], w["beta"], live, momentum, _eps(layer)
    )
    return y.movedim(1, -1)


def _scale_and_shift(_layer: Layer, shapes: Sequence[Shape]) -> dict[str, Shape]:
    return {"gamma": shapes[0][-1:], "beta": shapes[0][-1:]}


def _same(_layer: Layer, shapes: Sequence[Shape]) -> Shape:
    return shapes[0]


NORM: dict[str, LayerModel] = {
    "layer_norm": LayerModel(
        output=_same,
        numpy=_layer_norm,
        torch=_torch_layer_norm,
        weights=_scale_and_shift,
        initial={"gamma": 1},
    ),
    "group_norm": LayerModel(
        output=_same,
        numpy=_group_norm,
        torch=_torch_group_norm,
        weights=_scale_and_shift,
        initial={"gamma": 1},
    ),
    "batch_norm": LayerModel(
        output=_same,
        numpy=_batch_norm,
        trained=_batch_norm_trained,
        torch=_torch_batch_norm,
        weights=lambda layer, shapes: {
            **_scale_and_shift(layer, shapes),
            "running_mean": shapes[0][-1:],
            "running_var": shapes[0][-1:],
        },
        initial={"gamma": 1, "running_var": 1},
        buffers=("running_mean", "running_var"),
    ),
}
