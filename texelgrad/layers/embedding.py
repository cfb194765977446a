"""Embeddings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, Self, cast

from pydantic import Field, model_validator

from texelgrad.errors import Fault
from texelgrad.layers.base import Init, LayerBase, LayerShape, Number, Refused, Trainable, Value, init_of


class Embedding(Trainable):
    """Rows of a table [vocabulary, units] by their numbers: [length] whole numbers become [length, units]."""

    type: Literal["embedding"]
    vocabulary: Annotated[int, Field(ge=1, le=2**24, description="Numbers are from 0 to vocabulary - 1.")]
    units: Annotated[int, Field(ge=1, le=65536)]
    init: Init | Number | None = Field(default=None, description="Defaults to glorot_uniform.")

    @model_validator(mode="after")
    def _fill_in(self) -> Self:
        self.init = init_of(self.init, "glorot_uniform")
        return self

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """A row of the table for every number."""
        (x,) = values
        if not x.data:
            message = "looks up whole numbers, which only an input of the model holds"
            raise Refused(Fault(field, message, self.type, "an input of the model"))
        if len(x.shape) != 1 or len(x.held) != 1:
            message = f"embedding needs an input [length], not {list(x.held)}"
            raise Refused(Fault(field, message, self.type, "an input of one dimension"))
        output = (x.shape[0], self.units)
        weights = (1, self.vocabulary, self.units)
        # The gradient looks through 4 places of 4 samples a trip; nothing is multiplied.
        lines = (math.ceil(x.shape[0] / 4), 1)
        return LayerShape(x.shape, output, weights, False, pixels=0, lines=lines), Value(output, output)


def number_faults(
    layers: Sequence[LayerBase], places: Sequence[int], array: str, least: float, most: float, *, whole: bool
) -> Iterator[Fault]:
    """Whether the numbers of an array, from `least` to `most`, can be looked up by the embeddings at these places.

    The page's train/data.js checks each of them.
    """
    for index in places:
        layer = cast(Embedding, layers[index])
        legal = f"0 to {layer.vocabulary - 1}"
        if not whole:
            message = f"{array} has numbers that are not whole, which embedding can't look up"
            yield Fault("data", message, None, legal)
        elif least < 0:
            yield Fault("data", f"{array} has a number below 0, which embedding can't look up", least, legal)
        elif most >= layer.vocabulary:
            message = f"has {layer.vocabulary} rows, but {array} goes up to {most:.0f}"
            field = f"model.layers.{index}.vocabulary"
            yield Fault(field, message, layer.vocabulary, f"at least {most + 1:.0f}")
