"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from texelgrad.errors import Fault
from texelgrad.layers.base import MAX_TRIPS, LayerShape, Pair, Value, Weighted, image_shape, pair
from texelgrad.layers.window import Padding, slide


class Conv2d(Weighted):
    """Convolution over [height, width, channels]: activation(x * W + b), W [height, width, in, filters]."""

    type: Literal["conv2d"]
    filters: Annotated[int, Field(ge=1, le=65536)]
    kernel: Pair
    stride: Pair = Field(default=1, validate_default=True)
    padding: Padding = "valid"
    dilation: Pair = Field(default=1, validate_default=True)

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """A kernel applied at every place of its window."""
        shape = image_shape(values[0], self, field)
        kernel = pair(self.kernel)
        size = slide(self, field, shape, kernel, pair(self.stride), pair(self.dilation), self.padding)
        output = (*size, self.filters)
        weights = (math.prod(kernel), shape[2], self.filters)
        return LayerShape(shape, output, weights, self.use_bias, math.prod(size)), Value(output, output)

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:
        """A fragment sums 4 channels of a place a trip; the weights' gradient takes a line of pixels at least."""
        taps = math.prod(pair(self.kernel))
        channels = max(shape.input[2], shape.output[2] if shape.trained else 0)
        if taps * math.ceil(channels / 4) > MAX_TRIPS:
            message = f"sums {taps} places of {channels} channels, more than one fragment can"
            legal = f"height * width of at most {MAX_TRIPS // math.ceil(channels / 4)}, or fewer channels"
            yield Fault(f"{field}.kernel", message, self.kernel, legal)
        if 1 + shape.output[1] > MAX_TRIPS:
            message = "makes lines of more pixels than one fragment can sum"
            yield Fault(field, message, list(shape.output), f"a width of at most {MAX_TRIPS - 1}")
