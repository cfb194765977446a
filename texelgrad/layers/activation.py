"""Activations as layers of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from texelgrad.layers.base import Activation, LayerBase, LayerShape, Value


class ActivationLayer(LayerBase):
    """function(x), element by element; softmax over the last axis."""

    type: Literal["activation"]
    function: Activation = Field(description="relu ...; linear is the identity.")

    @property
    def applies(self) -> Activation:
        """Its function is all that it computes."""
        return self.function

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:  # noqa: ARG002
        """The shape stays."""
        (x,) = values
        return LayerShape(x.held, x.held), x
