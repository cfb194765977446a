"""Layers that only give values another shape, or move them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from texelgrad.errors import Fault
from texelgrad.layers.base import (
    MAX_TRIPS,
    LayerBase,
    LayerShape,
    Pair,
    Refused,
    Value,
    image_shape,
    natural,
    pair,
)
from texelgrad.layers.window import Edges


class Flatten(LayerBase):
    """Each sample becomes one row, in C order."""

    type: Literal["flatten"]

    def fit(self, values: Sequence[Value], field: str) -> tuple[None, Value]:  # noqa: ARG002
        """Moves nothing."""
        return None, Value((math.prod(values[0].shape),), values[0].held, values[0].data)


class Reshape(LayerBase):
    """The elements of each sample, in C order, in another shape."""

    type: Literal["reshape"]
    shape: Annotated[list[Annotated[int, Field(ge=1, le=2**24)]], Field(min_length=1, max_length=4)]

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape | None, Value]:
        """Moves nothing where the channels of a pixel stay together."""
        (x,) = values
        shape = tuple(self.shape)
        if math.prod(shape) != math.prod(x.shape):
            message = f"has {math.prod(shape)} elements, its input {list(x.shape)} has {math.prod(x.shape)}"
            legal = f"a product of {math.prod(x.shape)}"
            raise Refused(Fault(f"{field}.shape", message, self.shape, legal))
        value = Value(shape, x.held)
        held = x.held if len(shape) == 1 else natural(value).held
        return None if held == x.held else LayerShape(x.held, held), Value(
            shape, held, x.data and held == x.held
        )


class Upsample2d(LayerBase):
    """Each pixel fills a window of `size`: the nearest neighbour."""

    type: Literal["upsample2d"]
    size: Pair

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """The channels stay."""
        height, width, channels = image_shape(values[0], self, field)
        rows, columns = pair(self.size)
        output = (height * rows, width * columns, channels)
        return LayerShape((height, width, channels), output), Value(output, output)

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:
        """Where a gradient goes back, a fragment sums a window."""
        if shape.trained and math.prod(pair(self.size)) > MAX_TRIPS:
            message = "makes windows larger than one fragment can sum"
            yield Fault(f"{field}.size", message, self.size, f"at most {MAX_TRIPS} elements")


def _all_sides(value: Any) -> Any:
    """One number stands for all four sides."""
    plain = isinstance(value, int) and not isinstance(value, bool)
    return [[value, value], [value, value]] if plain else value


Sides = Annotated[
    Annotated[list[Edges], Field(min_length=2, max_length=2)] | Annotated[int, Field(ge=0, le=1024)],
    BeforeValidator(_all_sides),
]
"""[[above, below], [left, right]]; a number stands for all of them."""


def _edges(value: list[list[int]] | int) -> tuple[int, int]:
    """Rows and columns of both sides together, of a validated field."""
    assert isinstance(value, list), "validation makes edges of numbers"
    return sum(value[0]), sum(value[1])


class ZeroPad2d(LayerBase):
    """Lines of zeros around an image."""

    type: Literal["zero_pad2d"]
    padding: Sides

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """The channels stay."""
        height, width, channels = image_shape(values[0], self, field)
        rows, columns = _edges(self.padding)
        output = (height + rows, width + columns, channels)
        return LayerShape((height, width, channels), output), Value(output, output)


class Crop2d(LayerBase):
    """An image without some lines of its edges."""

    type: Literal["crop2d"]
    cropping: Sides

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """The channels stay."""
        height, width, channels = image_shape(values[0], self, field)
        rows, columns = _edges(self.cropping)
        output = (height - rows, width - columns, channels)
        if min(output) < 1:
            message = f"leaves nothing of an input of {height} x {width}"
            legal = f"below {height} rows and {width} columns together"
            raise Refused(Fault(f"{field}.cropping", message, self.cropping, legal))
        return LayerShape((height, width, channels), output), Value(output, output)
