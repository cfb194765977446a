"""Activations as layers of their own, and every activation in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..curves import VALUES
from .base import LayerModel

if TYPE_CHECKING:
    import torch


def torch_activation(fn: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """PyTorch's own function of that name, with its defaults."""
    import torch
    from torch.nn import functional

    if fn == "linear":
        return lambda x: x
    if fn == "softmax":
        return lambda x: torch.softmax(x, dim=-1)
    names = {"hard_sigmoid": "hardsigmoid", "hard_swish": "hardswish"}
    return getattr(torch, fn) if fn in ("sigmoid", "tanh") else getattr(functional, names.get(fn, fn))


ACTIVATION: dict[str, LayerModel] = {
    "activation": LayerModel(
        output=lambda _, shapes: shapes[0],
        numpy=lambda layer, _, xs: VALUES[layer["function"]](xs[0]),
        torch=lambda layer, _, xs: torch_activation(layer["function"])(xs[0]),
    ),
}
