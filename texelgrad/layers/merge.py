"""Layers that join several values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import ClassVar, Literal

from texelgrad.errors import Fault
from texelgrad.inputs import Shape
from texelgrad.layers.base import Activation, LayerBase, LayerShape, Refused, Value, natural


class _Elementwise(LayerBase):
    """Two or more values of one shape, element by element."""

    activation: Activation = "linear"
    reads: ClassVar[tuple[int, int | None]] = (2, None)
    sums: ClassVar[bool]

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """Two at a time. Where they are held differently, flattened images are moved."""
        _require(values, self, field, "one shape", lambda value: value.shape)
        alike = len({value.held[-1] for value in values}) == 1
        first = values[0] if alike else natural(values[0])
        moved = 0 if alike else sum(natural(value).held != value.held for value in values)
        return LayerShape(
            first.held, first.held, stored=len(values) - 1 + moved, hands_on=alike and self.sums
        ), first


class Add(_Elementwise):
    """Sum of two or more values of one shape: activation(a + b + ...)."""

    type: Literal["add"]
    sums: ClassVar[bool] = True


class Multiply(_Elementwise):
    """Product of two or more values of one shape: activation(a * b * ...)."""

    type: Literal["multiply"]
    sums: ClassVar[bool] = False


class Concat(LayerBase):
    """Two or more values one after another along their last axis."""

    type: Literal["concat"]
    reads: ClassVar[tuple[int, int | None]] = (2, None)

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """Two at a time. Flattened images are moved."""
        _require(
            values, self, field, "all but the last axis", lambda value: (len(value.shape), *value.shape[:-1])
        )
        output = (*values[0].shape[:-1], sum(value.shape[-1] for value in values))
        moved = [value.shape for value in values if natural(value).held != value.held]
        widths = [*accumulate(value.shape[-1] for value in values)][1:-1]
        joined = [(*output[:-1], width) for width in widths]
        return LayerShape(values[0].shape, output, passing=(*moved, *joined)), Value(output, output)


def _require(
    values: Sequence[Value], layer: LayerBase, field: str, what: str, part: Callable[[Value], Shape]
) -> None:
    """All values have `part` of their shapes in common. Raises Refused."""
    for k, value in enumerate(values):
        if part(value) != part(values[0]):
            shapes = ", ".join(str(list(v.shape)) for v in values)
            message = f"{layer.kind} needs inputs of {what}, these are {shapes}"
            legal = str(list(values[0].shape))
            raise Refused(Fault(f"{field}.inputs.{k}", message, list(value.shape), legal))
