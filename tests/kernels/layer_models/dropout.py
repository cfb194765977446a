"""Dropout by the masks that texelgrad/rng.py draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from texelgrad.rng import dropout_mask

from ..windows import Floats
from .base import Layer, LayerModel

if TYPE_CHECKING:
    import torch


def _factors(layer: Layer, shape: tuple[int, ...]) -> Floats:
    """0 or 1 / (1 - rate) for each element of a batch; `draw` is the seed and the number of the layer, `step` that of the run."""
    seed, number = layer["draw"]
    mask = dropout_mask(seed, number, layer.get("step", 0), int(np.prod(shape)), layer["rate"])
    return mask.reshape(shape) / (1 - layer["rate"])


def _torch(layer: Layer, x: torch.Tensor) -> torch.Tensor:
    import torch

    return x * torch.tensor(_factors(layer, tuple(x.shape)), dtype=x.dtype)


DROPOUT: dict[str, LayerModel] = {
    "dropout": LayerModel(
        output=lambda _, shapes: shapes[0],
        numpy=lambda _, __, xs: xs[0],
        trained=lambda layer, _, xs: xs[0] * _factors(layer, xs[0].shape),
        torch=lambda layer, _, xs: _torch(layer, xs[0]),
    ),
}
