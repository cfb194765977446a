"""What the tests must know of a layer type: its shapes and weights, and what it computes in NumPy and in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..windows import Floats

if TYPE_CHECKING:
    import torch

Layer = dict[str, Any]
Shape = tuple[int, ...]


def no_weights(_layer: Layer, _shapes: Sequence[Shape]) -> dict[str, Shape]:
    """For layers without."""
    return {}


@dataclass(frozen=True)
class LayerModel:
    """Functions of one type; `shapes` and `xs` are those of what the layer reads, batches are [rows, ...] and images NHWC.

    `numpy` and `torch` compute what comes before the layer's activation.
    """

    output: Callable[[Layer, Sequence[Shape]], Shape]
    numpy: Callable[[Layer, Mapping[str, Floats], Sequence[Floats]], Floats]
    torch: Callable[[Layer, Mapping[str, torch.Tensor], Sequence[torch.Tensor]], torch.Tensor]
    weights: Callable[[Layer, Sequence[Shape]], dict[str, Shape]] = no_weights
    """Shape of each part, such as kernel and bias; the last axis of a kernel counts its units."""
    initial: Mapping[str, float] = field(default_factory=dict[str, float])
    """What parts other than kernels begin as; 0 where nothing is said."""
    buffers: tuple[str, ...] = ()
    """Parts that steps write and nothing trains."""
    trained: Callable[[Layer, Mapping[str, Floats], Sequence[Floats]], Floats] | None = None
    """What `numpy` is in a training step, where that is something else; `torch` is always that of a step."""


def with_bias(layer: Layer, kernel: Shape) -> dict[str, Shape]:
    """A kernel and, unless the layer does without, a bias for each of its units."""
    return {"kernel": kernel} | ({"bias": kernel[-1:]} if layer.get("use_bias", True) else {})
