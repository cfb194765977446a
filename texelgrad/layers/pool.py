"""Pooling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from texelgrad.errors import Fault
from texelgrad.layers.base import (
    MAX_TRIPS,
    Extent,
    LayerBase,
    LayerShape,
    Pair,
    Refused,
    Value,
    image_shape,
    pair,
    sequence_shape,
)
from texelgrad.layers.window import Padding, Padding1d, slide


class _Pool2d(LayerBase):
    """One value a channel and place of a window."""

    _winners: ClassVar[bool] = False

    size: Pair
    stride: Pair | None = Field(default=None, description="Defaults to the size.")
    padding: Padding = "valid"

    @model_validator(mode="after")
    def _fill_in(self) -> Self:
        self.stride = self.stride or self.size
        return self

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """The channels stay."""
        shape = image_shape(values[0], self, field)
        window = pair(self.size)
        size = slide(self, field, shape, window, pair(self.stride), (1, 1), self.padding)
        if isinstance(self.padding, list) and any(
            edge >= window[axis] for axis in (0, 1) for edge in self.padding[axis]
        ):
            message = "a window may not lie in the padding alone"
            raise Refused(Fault(f"{field}.padding", message, self.padding, f"below the size {list(window)}"))
        output = (*size, shape[2])
        return LayerShape(shape, output, winners=self._winners), Value(output, output)

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:  # noqa: ARG002
        """Trips over a window."""
        yield from _window_faults(pair(self.size), f"{field}.size")


class MaxPool2d(_Pool2d):
    """Largest element of each window."""

    type: Literal["max_pool2d"]
    _winners: ClassVar[bool] = True


class AvgPool2d(_Pool2d):
    """Mean of each window; padding is not counted."""

    type: Literal["avg_pool2d"]


class _Pool1d(LayerBase):
    """One value a channel and place of a window over a sequence."""

    _winners: ClassVar[bool] = False

    size: Extent
    stride: Extent | None = Field(default=None, description="Defaults to the size.")
    padding: Padding1d = "valid"

    @model_validator(mode="after")
    def _fill_in(self) -> Self:
        self.stride = self.stride or self.size
        return self

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """The channels stay."""
        length, channels = sequence_shape(values[0], self, field)
        window, padding = (
            (1, self.size),
            self.padding if isinstance(self.padding, str) else [[0, 0], self.padding],
        )
        _, places = slide(self, field, (1, length, channels), window, (1, self.stride or 1), (1, 1), padding)
        if isinstance(self.padding, list) and max(self.padding) >= self.size:
            message = "a window may not lie in the padding alone"
            raise Refused(Fault(f"{field}.padding", message, self.padding, f"below the size {self.size}"))
        output = (places, channels)
        return LayerShape((length, channels), output, winners=self._winners), Value(output, output)

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:  # noqa: ARG002
        """Trips over a window."""
        yield from _window_faults((1, self.size), f"{field}.size")


class MaxPool1d(_Pool1d):
    """Largest element of each window over a sequence."""

    type: Literal["max_pool1d"]
    _winners: ClassVar[bool] = True


class AvgPool1d(_Pool1d):
    """Mean of each window over a sequence; padding is not counted."""

    type: Literal["avg_pool1d"]


class _GlobalPool1d(LayerBase):
    """One value a channel: a row of each sequence."""

    _winners: ClassVar[bool] = False

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """One window over the whole sequence."""
        shape = sequence_shape(values[0], self, field)
        output = (shape[1],)
        return LayerShape(shape, output, winners=self._winners), Value(output, output)

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:
        """Trips over a window."""
        yield from _window_faults((1, shape.input[0]), field)


class GlobalMaxPool1d(_GlobalPool1d):
    """Largest element of each channel of a sequence."""

    type: Literal["global_max_pool1d"]
    _winners: ClassVar[bool] = True


class GlobalAvgPool1d(_GlobalPool1d):
    """Mean of each channel of a sequence."""

    type: Literal["global_avg_pool1d"]


class _GlobalPool2d(LayerBase):
    """One value a channel: a row of each image."""

    _winners: ClassVar[bool] = False

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """One window over the whole image."""
        shape = image_shape(values[0], self, field)
        output = (shape[2],)
        return LayerShape(shape, output, winners=self._winners), Value(output, output)

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:
        """Trips over a window."""
        yield from _window_faults((shape.input[0], shape.input[1]), field)


class GlobalMaxPool2d(_GlobalPool2d):
    """Largest element of each channel."""

    type: Literal["global_max_pool2d"]
    _winners: ClassVar[bool] = True


class GlobalAvgPool2d(_GlobalPool2d):
    """Mean of each channel."""

    type: Literal["global_avg_pool2d"]


def _window_faults(size: tuple[int, int], field: str) -> Iterator[Fault]:
    if math.prod(size) > MAX_TRIPS:
        message = "makes windows larger than one fragment can look through"
        yield Fault(field, message, list(size), f"at most {MAX_TRIPS} elements")
