"""Layers of a model: one class a type. How their shapes follow from each other stands in network.py."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, cast

from pydantic import BeforeValidator, Field, model_validator

from texelgrad.spec_fields import Name, Strict, available

Init = Literal[
    "glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "xavier_uniform", "xavier_normal"
]
Activation = Literal["linear", "relu", "sigmoid", "tanh"]


def _both(value: Any) -> Any:
    """One number stands for both directions."""
    return [value, value] if isinstance(value, int) and not isinstance(value, bool) else value


Extent = Annotated[int, Field(ge=1, le=1024)]
Pair = Annotated[Annotated[list[Extent], Field(min_length=2, max_length=2)] | Extent, BeforeValidator(_both)]
"""Rows and columns; a number stands for both."""
_Edge = Annotated[list[Annotated[int, Field(ge=0, le=1024)]], Field(min_length=2, max_length=2)]
Padding = Literal["valid", "same"] | Annotated[list[_Edge], Field(min_length=2, max_length=2)]
"""None, as much as keeps size / stride, or zeros [[above, below], [left, right]]."""


class _Weighted(Strict):
    """What layers with weights have in common."""

    activation: Activation = "linear"
    init: Init | None = Field(
        default=None, description="Defaults to he_uniform for relu, else glorot_uniform."
    )
    bias_init: Literal["zeros"] = "zeros"
    use_bias: Annotated[bool, available(True)] = True

    @model_validator(mode="after")
    def _fill_in(self) -> Self:
        init = self.init or ("he_uniform" if self.activation == "relu" else "glorot_uniform")
        self.init = cast(Init, init.replace("xavier", "glorot"))
        return self


class Dense(_Weighted):
    """Fully connected: activation(x W + b), W [in, units]."""

    type: Literal["dense"]
    name: Name | None = Field(default=None, description="Defaults to dense_<n>, counted from 1.")
    units: Annotated[int, Field(ge=1, le=65536)]


class Conv2d(_Weighted):
    """Convolution over [height, width, channels]: activation(x * W + b), W [height, width, in, filters]."""

    type: Literal["conv2d"]
    name: Name | None = Field(default=None, description="Defaults to conv2d_<n>, counted from 1.")
    filters: Annotated[int, Field(ge=1, le=65536)]
    kernel: Pair
    stride: Pair = Field(default=1, validate_default=True)
    padding: Padding = "valid"
    dilation: Pair = Field(default=1, validate_default=True)


class MaxPool2d(Strict):
    """Largest element of each window."""

    type: Literal["max_pool2d"]
    name: Name | None = Field(default=None, description="Defaults to max_pool2d_<n>, counted from 1.")
    size: Pair
    stride: Pair | None = Field(default=None, description="Defaults to the size.")
    padding: Padding = "valid"

    @model_validator(mode="after")
    def _fill_in(self) -> Self:
        self.stride = self.stride or self.size
        return self


class Flatten(Strict):
    """Each sample becomes one row, in C order."""

    type: Literal["flatten"]
    name: Name | None = Field(default=None, description="Defaults to flatten_<n>, counted from 1.")


Layer = Annotated[Dense | Conv2d | MaxPool2d | Flatten, Field(discriminator="type")]
