"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from texelgrad.errors import Fault
from texelgrad.inputs import Shape
from texelgrad.layers.base import (
    MAX_TRIPS,
    Extent,
    LayerShape,
    Pair,
    Refused,
    Value,
    Weighted,
    image_shape,
    pair,
    sequence_shape,
)
from texelgrad.layers.window import Padding, Padding1d, slide

Filters = Annotated[int, Field(ge=1, le=65536)]
Groups = Annotated[int, Field(ge=1, le=65536, description="Each joins its share of channels and filters.")]


class Conv2d(Weighted):
    """Convolution over [height, width, channels]: activation(x * W + b), W [height, width, in / groups, filters]."""

    type: Literal["conv2d"]
    filters: Filters
    kernel: Pair
    stride: Pair = Field(default=1, validate_default=True)
    padding: Padding = "valid"
    dilation: Pair = Field(default=1, validate_default=True)
    groups: Groups = 1

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """A kernel applied at every place of its window."""
        shape = image_shape(values[0], self, field)
        kernel = pair(self.kernel)
        size = slide(self, field, shape, kernel, pair(self.stride), pair(self.dilation), self.padding)
        require_groups(shape[-1], self.groups, self.filters, field)
        return _convolution(shape, (*size, self.filters), kernel, self.groups, use_bias=self.use_bias)

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:
        """A fragment sums 4 channels of a place a trip; the weights' gradient takes a line of pixels at least."""
        yield from loop_faults(self.kernel, math.prod(pair(self.kernel)), self.groups, shape, field)


class Conv1d(Weighted):
    """Convolution over [length, channels]: conv2d with one row, W [kernel, in / groups, filters]."""

    type: Literal["conv1d"]
    filters: Filters
    kernel: Extent
    stride: Extent = 1
    padding: Padding1d = "valid"
    dilation: Extent = 1
    groups: Groups = 1

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """A kernel applied at every place of its window."""
        length, channels = sequence_shape(values[0], self, field)
        kernel = (1, self.kernel)
        padding = self.padding if isinstance(self.padding, str) else [[0, 0], self.padding]
        _, places = slide(
            self, field, (1, length, channels), kernel, (1, self.stride), (1, self.dilation), padding
        )
        require_groups(channels, self.groups, self.filters, field)
        shape, output = (length, channels), (places, self.filters)
        return _convolution(shape, output, kernel, self.groups, use_bias=self.use_bias)

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:
        """As conv2d."""
        yield from loop_faults(self.kernel, self.kernel, self.groups, shape, field)


class Conv2dTranspose(Weighted):
    """The transpose of a convolution: each pixel of [height, width, channels] lays down a kernel, W [height, width, in, filters]."""

    type: Literal["conv2d_transpose"]
    filters: Filters
    kernel: Pair
    stride: Pair = Field(default=1, validate_default=True)
    padding: Padding = Field(
        default="valid", description="What is left out around all that the kernels touch; valid: nothing."
    )
    dilation: Pair = Field(default=1, validate_default=True)

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """A kernel laid down for every place of the input."""
        shape = image_shape(values[0], self, field)
        size = [self._spread(shape[axis], axis, field) for axis in (0, 1)]
        return _convolution(
            shape, (*size, self.filters), pair(self.kernel), 1, use_bias=self.use_bias, transposed=True
        )

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:
        """As conv2d; the gradient of the bias sums lines of the output."""
        yield from loop_faults(self.kernel, math.prod(pair(self.kernel)), 1, shape, field)

    def _spread(self, length: int, axis: int, field: str) -> int:
        """Size along an axis; nn/layers/conv.js has the rule in words."""
        stride = pair(self.stride)[axis]
        extent = (pair(self.kernel)[axis] - 1) * pair(self.dilation)[axis] + 1
        if self.padding == "same":
            return length * stride
        if self.padding == "valid":
            return length * stride + max(extent - stride, 0)
        touched = (length - 1) * stride + extent
        size = touched - sum(self.padding[axis])
        if size < 1:
            message = (
                f"leaves nothing of the {touched} {'columns' if axis else 'rows'} that the windows touch"
            )
            legal = f"two sides of together at most {touched - 1}"
            raise Refused(Fault(f"{field}.padding", message, self.padding, legal))
        return size


def _convolution(
    shape: Shape, output: Shape, kernel: tuple[int, int], groups: int, *, use_bias: bool, transposed: bool = False
) -> tuple[LayerShape, Value]:  # fmt: skip
    channels, filters = shape[-1], output[-1]
    places = shape[:-1] if transposed else output[:-1]
    # The gradient sums lines of windows, or for the bias of a transposed convolution, of all that it makes.
    height, width = (1, *output[:-1])[-2:]
    if transposed:
        height, width = max(height, shape[0]), max(width, shape[1])
    singly = one_by_one(groups, channels, filters)
    lines = (height, 1 + (4 * (1 + width) if singly else width))
    weights = (math.prod(kernel), channels // groups, filters)
    # What loops too long is refused, whatever may be stored.
    windows = groups == 1 and not transposed and math.prod(kernel) * math.ceil(channels / 4) <= MAX_TRIPS
    made = LayerShape(shape, output, weights, use_bias, math.prod(places), lines=lines, windows=windows)
    return made, Value(output, output)


def require_groups(channels: int, groups: int, filters: int, field: str) -> None:
    """Groups share channels and filters alike. Raises Refused."""
    if channels % groups or filters % groups:
        message = f"must share {channels} channels and {filters} filters alike"
        legal = f"a divisor of {math.gcd(channels, filters)}"
        raise Refused(Fault(f"{field}.groups", message, groups, legal))


def one_by_one(groups: int, channels: int, filters: int) -> bool:
    """Whether groups begin in the middle of texels, so that their channels are taken singly."""
    whole = channels // groups % 4 == 0 and filters // groups % 4 == 0
    return groups > 1 and not whole and max(channels, filters) > groups


def loop_faults(kernel: object, taps: int, groups: int, shape: LayerShape, field: str) -> Iterator[Fault]:
    """What the draws of a convolution would loop too long for; kernels/conv.js counts the same."""
    channels, filters = shape.input[-1], shape.output[-1]
    at_once = 1 if one_by_one(groups, channels, filters) else 4
    summed = max(channels, filters if shape.trained else 0) // groups
    trips = math.ceil(summed / at_once)
    if taps * trips > MAX_TRIPS:
        message = f"sums {taps} places of {summed} channels, more than one fragment can"
        legal = f"height * width of at most {MAX_TRIPS // trips}, or fewer channels"
        yield Fault(f"{field}.kernel", message, kernel, legal)
    if shape.lines and shape.lines[1] > MAX_TRIPS:
        message = "makes lines of more pixels than one fragment can sum"
        most = (MAX_TRIPS - 1) // 4 - 1 if at_once == 1 else MAX_TRIPS - 1
        yield Fault(field, message, list(shape.output), f"a width of at most {most}")
