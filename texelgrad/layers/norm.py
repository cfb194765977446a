"""Normalization: by statistics of each sample, or of each channel over the batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from texelgrad.errors import Fault
from texelgrad.inputs import Shape
from texelgrad.layers.base import (
    MAX_TRIPS,
    Activation,
    LayerShape,
    Refused,
    Sums,
    Trainable,
    Value,
    natural,
)
from texelgrad.spec_fields import Float32

_BLOCK = 64  # texels or pixels that a fragment adds up before it goes on
_ALONE = 256  # texels of a set that one fragment sums alone
_Eps = Annotated[Float32, Field(ge=1e-12, le=1)]


class Norm(Trainable):
    """What all normalizations have in common: activation(gamma * normalized x + beta)."""

    eps: _Eps = Field(default=1e-5, description="Added to the variance.")
    activation: Activation = "linear"

    def normalized(self, values: Sequence[Value], sums: Sums) -> tuple[LayerShape, Value]:
        """The shape stays; gamma and beta have a number a channel. A flattened image is moved."""
        x = natural(values[0])
        weights, moved = (1, 1, sums.channels), int(x.held != values[0].held)
        return LayerShape(x.held, x.held, weights, pixels=sums.pixels, stored=1 + moved, sums=sums), x

    def tensors(self, shape: LayerShape) -> dict[str, Shape]:
        """gamma and beta."""
        return {"gamma": (shape.output[-1],), "beta": (shape.output[-1],)}

    def pixels_and_channels(self, values: Sequence[Value]) -> tuple[int, int]:
        """Of what is normalized."""
        held = natural(values[0]).held
        return math.prod(held[:-1]), held[-1]


class SampleNorm(Norm):
    """By the mean and variance of each set of values of a sample."""

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:
        """A fragment goes twice through a set, or through parts of it that are at least the channels of a pixel."""
        assert shape.sums
        if 2 * max(trips_of_part(shape.sums), shape.sums.parts) > MAX_TRIPS:
            message = (
                f"normalizes {shape.sums.own} channels of a pixel together, more than one fragment can sum"
            )
            yield Fault(field, message, list(shape.output), f"at most {_most_channels()} channels")


class LayerNorm(SampleNorm):
    """Over the last axis: the values of a row, or the channels of each pixel."""

    type: Literal["layer_norm"]

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:  # noqa: ARG002
        """A set for each pixel."""
        pixels, channels = self.pixels_and_channels(values)
        return self.normalized(values, Sums(pixels, channels, own=channels, sets=pixels))


class GroupNorm(SampleNorm):
    """Over groups of channels, height and width of each sample."""

    type: Literal["group_norm"]
    groups: Annotated[int, Field(ge=1, le=65536)] = Field(description="Divides the number of channels.")

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:
        """A set for each group."""
        if values[0].shape[-1] % self.groups:
            message = f"{self.groups} groups can't share {values[0].shape[-1]} channels evenly"
            legal = "a divisor of the channels"
            raise Refused(Fault(f"{field}.groups", message, self.groups, legal))
        pixels, channels = self.pixels_and_channels(values)
        own = channels // self.groups
        texels = texels_of_group(own, self.groups)
        parts = -(-pixels // part_pixels(pixels, texels))
        return self.normalized(values, Sums(pixels, channels, own=own, sets=self.groups, parts=parts))


class BatchNorm(Norm):
    """Each channel by its mean and variance over the batch, height and width; running ones in evaluation.

    As PyTorch: running = (1 - momentum) * running + momentum * batch, the variance there over n - 1. A frozen one normalizes by its
    running statistics in training too, and leaves them as they are.
    """

    type: Literal["batch_norm"]
    momentum: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = Field(
        default=0.1, description="Share of the new batch in the running statistics, as in PyTorch."
    )

    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape, Value]:  # noqa: ARG002
        """Statistics of the batch; those of one value are none."""
        return self.normalized(values, Sums(*self.pixels_and_channels(values)))

    def tensors(self, shape: LayerShape) -> dict[str, Shape]:
        """The running statistics too."""
        channels = (shape.output[-1],)
        return super().tensors(shape) | {"running_mean": channels, "running_var": channels}


def texels_of_group(own: int, groups: int) -> int:
    """Texels of a pixel that hold channels of a group: one that does not fill them may begin and end within one."""
    return -(-own // 4) if own % 4 == 0 or groups == 1 else (own + 2) // 4 + 1


def part_pixels(pixels: int, texels: int) -> int:
    """Pixels of a set that one fragment sums."""
    of_set = pixels * texels
    return pixels if of_set <= _ALONE else max(1, math.ceil(math.sqrt(of_set) / texels))


def trips_of_part(sums: Sums) -> int:
    """Of one pass over a part of a set."""
    groups = sums.channels // sums.own
    texels = texels_of_group(sums.own, groups)
    pixels = 1 if groups == 1 and sums.sets == sums.pixels else part_pixels(sums.pixels, texels)
    return pixels * _trips_of_pixel(texels)


def _trips_of_pixel(texels: int) -> int:
    return 1 + -(-texels // _BLOCK) + texels


def _most_channels() -> int:
    """That one pixel may have."""
    texels = MAX_TRIPS // 2
    while 2 * _trips_of_pixel(texels) > MAX_TRIPS:
        texels -= 1
    return 4 * texels
