"""Layers that join several values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from texelgrad.errors import Fault
from texelgrad.layers.base import Activation, LayerBase, LayerShape, Refused, Value


class Add(LayerBase):
    """Sum of two or more values of one shape: activation(a + b + ...)."""

    type: Literal["add"]
    activation: Activation = "linear"
    reads: ClassVar[tuple[int, int | None]] = (2, None)

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """Two at a time."""
        require_alike(values, self, field)
        shape, held = values[0].shape, values[0].held
        return LayerShape(held, held, stored=len(values) - 1), Value(shape, held)


def require_alike(values: Sequence[Value], layer: LayerBase, field: str) -> None:
    """All values have one shape, and are held alike. Raises Refused."""
    first = values[0]
    for k, value in enumerate(values):
        if value.shape != first.shape:
            shapes = ", ".join(str(list(v.shape)) for v in values)
            message = f"{layer.kind} needs inputs of one shape, these are {shapes}"
            raise Refused(Fault(f"{field}.inputs.{k}", message, list(value.shape), str(list(first.shape))))
        if value.held != first.held:
            message = f"{layer.kind} can't join a flattened image with a flat input"
            raise Refused(Fault(f"{field}.inputs.{k}", message, list(value.held), "all flattened, or none"))
