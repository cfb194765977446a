"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from texelgrad.errors import Fault
from texelgrad.layers.base import MAX_TRIPS, LayerShape, Pair, Refused, Value, Weighted, image_shape, pair
from texelgrad.layers.window import Padding, slide

Filters = Annotated[int, Field(ge=1, le=65536)]


class Conv2d(Weighted):
    """Convolution over [height, width, channels]: activation(x * W + b), W [height, width, in / groups, filters]."""

    type: Literal["conv2d"]
    filters: Filters
    kernel: Pair
    stride: Pair = Field(default=1, validate_default=True)
    padding: Padding = "valid"
    dilation: Pair = Field(default=1, validate_default=True)
    groups: Annotated[int, Field(ge=1, le=65536)] = Field(
        default=1, description="Each joins its share of the channels with its share of the filters."
    )

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """A kernel applied at every place of its window."""
        shape = image_shape(values[0], self, field)
        kernel = pair(self.kernel)
        size = slide(self, field, shape, kernel, pair(self.stride), pair(self.dilation), self.padding)
        require_groups(shape[-1], self.groups, self.filters, field)
        output = (*size, self.filters)
        weights = (math.prod(kernel), shape[2] // self.groups, self.filters)
        singly = one_by_one(self.groups, shape[2], self.filters)
        lines = (size[0], 1 + (4 * (1 + size[1]) if singly else size[1]))
        shaped = LayerShape(shape, output, weights, self.use_bias, math.prod(size), lines=lines)
        return shaped, Value(output, output)

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:
        """A fragment sums 4 channels of a place a trip; the weights' gradient takes a line of pixels at least."""
        yield from loop_faults(self.kernel, math.prod(pair(self.kernel)), self.groups, shape, field)


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
