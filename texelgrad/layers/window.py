"""Sliding windows of convolutions and poolings."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from texelgrad.errors import Fault
from texelgrad.inputs import Shape
from texelgrad.layers.base import LayerBase, Refused

Edges = Annotated[list[Annotated[int, Field(ge=0, le=1024)]], Field(min_length=2, max_length=2)]
Padding = Literal["valid", "same"] | Annotated[list[Edges], Field(min_length=2, max_length=2)]
"""None, as much as keeps size / stride, or zeros [[above, below], [left, right]]."""
Padding1d = Literal["valid", "same"] | Edges
"""None, as much as keeps size / stride, or zeros [before, behind]."""


def slide(
    layer: LayerBase,
    field: str,
    shape: Shape,
    window: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: str | list[list[int]],
) -> tuple[int, int]:
    """Height and width of what a sliding window makes. Raises Refused where it does not fit."""

    def axis(i: int) -> int:
        extent = (window[i] - 1) * dilation[i] + 1
        if padding == "same":
            return math.ceil(shape[i] / stride[i])
        padded = shape[i] + (sum(padding[i]) if isinstance(padding, list) else 0)
        return (padded - extent) // stride[i] + 1

    size = axis(0), axis(1)
    if min(size) < 1:
        message = f"its window does not fit an input of {shape[0]} x {shape[1]} with padding {padding}"
        raise Refused(Fault(field, message, layer.kind, "a smaller window, or padding"))
    return size
