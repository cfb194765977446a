"""Pooling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from texelgrad.errors import Fault
from texelgrad.layers.base import (
    MAX_TRIPS,
    ROWS,
    LayerBase,
    LayerShape,
    Pair,
    Refused,
    Value,
    image_shape,
    pair,
)
from texelgrad.layers.window import Padding, slide


class MaxPool2d(LayerBase):
    """Largest element of each window."""

    type: Literal["max_pool2d"]
    size: Pair
    stride: Pair | None = Field(default=None, description="Defaults to the size.")
    padding: Padding = "valid"

    @model_validator(mode="after")
    def _fill_in(self) -> Self:
        self.stride = self.stride or self.size
        return self

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """One value a channel and place of the window."""
        shape = image_shape(values[0], self, field)
        window = pair(self.size)
        size = slide(self, field, shape, window, pair(self.stride), (1, 1), self.padding)
        if isinstance(self.padding, list) and any(
            edge >= window[axis] for axis in (0, 1) for edge in self.padding[axis]
        ):
            message = "a window may not lie in the padding alone"
            raise Refused(Fault(f"{field}.padding", message, self.padding, f"below the size {list(window)}"))
        output = (*size, shape[2])
        return LayerShape(shape, output), Value(output, output)

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:
        """Trips over a window, or, where a gradient goes back, over all windows that an element stands in."""
        size, stride = pair(self.size), pair(self.stride)
        windows = math.prod(math.ceil(size[axis] / stride[axis]) for axis in (0, 1))
        if math.prod(size) * (ROWS * (1 + windows) if shape.trained else 1) > MAX_TRIPS:
            message = "makes windows larger than one fragment can look through"
            yield Fault(f"{field}.size", message, self.size, "a smaller one, or a larger stride")
