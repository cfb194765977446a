"""Dense layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from texelgrad.errors import Fault
from texelgrad.inputs import Shape
from texelgrad.layers.base import MAX_TRIPS, ROW_LANES, LayerShape, Refused, Value, Weighted, texels


class Dense(Weighted):
    """Fully connected: activation(x W + b), W [in, units]."""

    type: Literal["dense"]
    units: Annotated[int, Field(ge=1, le=65536)]

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """Where an image was flattened, the weight rows come pixel by pixel."""
        (x,) = values
        if len(x.shape) != 1:
            message = f"dense needs a flat input, not {list(x.shape)}"
            raise Refused(Fault(field, message, self.type, "a flatten layer before it"))
        channels = x.held[-1]
        weights = (x.shape[0] // channels, channels, self.units)
        output = (self.units,)
        return LayerShape(x.held, output, weights, self.use_bias), Value(output, output)

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:
        """A fragment sums 4 inputs a trip."""
        if texels(shape.input) > MAX_TRIPS - ROW_LANES:
            message = "reads more values than one fragment can sum"
            yield Fault(field, message, list(shape.input), _legal_inputs(shape.input))


def _legal_inputs(shape: Shape) -> str:
    if len(shape) == 1:
        return f"at most {4 * (MAX_TRIPS - ROW_LANES)} values a row"
    of_pixel = -(-shape[-1] // 4)
    return f"at most {(MAX_TRIPS - ROW_LANES) // of_pixel} pixels of {shape[-1]} channels"
