"""Dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from texelgrad.layers.base import LayerBase, LayerShape, Value


class Dropout(LayerBase):
    """In training, zeros for a share of the elements, drawn anew at every step; the others divided by 1 - rate."""

    type: Literal["dropout"]
    rate: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False, description="Share of zeros.")]

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape | None, Value]:  # noqa: ARG002
        """The shape stays."""
        (x,) = values
        return (LayerShape(x.held, x.held), Value(x.shape, x.held)) if self.rate > 0 else (None, x)
