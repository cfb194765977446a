"""What all layers have in common: fields, and how the shapes that they read and make are told."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import BeforeValidator, Field, model_validator

from texelgrad.errors import Fault
from texelgrad.inputs import Shape
from texelgrad.spec_fields import FLOAT32_MAX, Float32, Name, Strict

Init = Literal[
    "glorot_uniform", "glorot_normal", "glorot_truncated_normal", "he_uniform", "he_normal",
    "he_truncated_normal", "lecun_uniform", "lecun_normal", "lecun_truncated_normal",
    "xavier_uniform", "xavier_normal", "xavier_truncated_normal", "orthogonal", "zeros", "ones",
]  # fmt: skip
Number = Annotated[Float32, Field(ge=-FLOAT32_MAX)]
MAX_ORTHOGONAL = 2**31
"""Multiply-adds of an orthogonal matrix that nobody should have to wait for longer: about 8 s."""
Activation = Literal[
    "linear", "relu", "leaky_relu", "elu", "gelu", "silu", "sigmoid", "tanh", "softplus",
    "hard_sigmoid", "hard_swish", "softmax",
]  # fmt: skip
RELU_LIKE = ("relu", "leaky_relu", "elu", "gelu", "silu", "hard_swish")
"""They pass what is positive and damp what is negative: He's initialisation suits them."""
KEEPS_INPUT = ("gelu", "silu", "hard_swish")
"""Their slope is computed from the input, which the engine therefore keeps (browser_runtime/nn/activations.js)."""

MAX_TRIPS = 32_768
"""Loop trips of one fragment of the engine, all its loops together."""
ROWS = 4
"""Samples that one fragment of the engine writes."""
ROW_LANES = 32
"""Trips of an epilogue's loops over rows and lanes."""


MAX_SOFTMAX_CHANNELS = (MAX_TRIPS // ROWS - 4) // 10 * 4
"""A fragment goes through the channels of ROWS pixels twice, 5 trips for 4 of them, and 4 trips besides."""


def init_of(given: Init | float | None, default: Init) -> Init | float:
    """An initialiser with its default filled in; Xavier and Glorot are one man, Xavier Glorot."""
    init = default if given is None else given
    return cast(Init, init.replace("xavier", "glorot")) if isinstance(init, str) else init


def init_faults(layer: LayerBase, weights: tuple[int, int, int] | None, field: str) -> Iterator[Fault]:
    """What would take too long to make orthogonal."""
    if weights and getattr(layer, "init", None) == "orthogonal":
        rows, columns = weights[0] * weights[1], weights[2]
        if rows * columns * min(rows, columns) > MAX_ORTHOGONAL:
            message = f"takes too long for {rows} x {columns} weights"
            legal = f"another, or rows * columns * the smaller of them up to {MAX_ORTHOGONAL}"
            yield Fault(f"{field}.init", message, "orthogonal", legal)


class Refused(Exception):
    """A layer does not fit what it reads; carries the fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True)
class Value:
    """What a layer reads or makes: the shape that the user sees, and the one in which the engine holds it.

    They differ where an image was flattened: that moves nothing.
    """

    shape: Shape
    held: Shape
    data: bool = False  # whether it is an input of the model as it came


@dataclass(frozen=True)
class Sums:
    """What a normalization sums up for its statistics; browser_runtime/backends/webgl2/kernels/norm.js."""

    pixels: int
    channels: int
    own: int = 0  # channels of a set
    sets: int = 0  # of a sample; 0: the statistics are those of a batch
    parts: int = 1  # in which a set is summed


@dataclass(frozen=True)
class LayerShape:
    """One layer, its input and output as held ([channels] or [height, width, channels]) and its weights."""

    input: Shape
    output: Shape
    weights: tuple[int, int, int] | None = None  # blocks, rows of each, columns; the bias not counted
    bias: bool = True  # whether there is a bias for each column of the weights
    pixels: int = 1  # places at which the weights are applied
    lines: tuple[int, int] | None = None  # where their gradient is summed in parts: lines, trips of each
    windows: bool = (
        False  # whether what its windows hold may be stored side by side, as the channels of a pixel
    )
    stored: int = 1  # tensors of the output's size that the engine keeps for the backward pass
    winners: bool = False  # whether its gradient needs to know, for each output, which element it was
    passing: tuple[Shape, ...] = ()  # what it makes on its way to the output, in order; no gradient needs it
    sums: Sums | None = None  # of a normalization
    index: int = 0  # of the layer in the model
    reads: tuple[int, ...] = ()  # indices of the layers that made what it reads; no input of the model
    hands_on: bool = False  # whether its output's gradient serves as that of each value that it reads
    trained: bool = (
        False  # whether a gradient goes back through it: what it reads depends on weights that are trained
    )
    frozen: bool = False  # whether its weights, if it has some, stay as they are

    @property
    def is_dense(self) -> bool:
        """Whether it multiplies flat rows by weights."""
        return self.weights is not None and self.lines is None and self.sums is None

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return math.prod(self.weights) + (self.weights[2] if self.bias else 0) if self.weights else 0

    @property
    def products(self) -> int:
        """Multiply-adds of the forward pass for one sample, the bias as one."""
        return self.parameters * self.pixels


class LayerBase(Strict):
    """A layer of any type."""

    name: Name | None = Field(default=None, description="Defaults to <type>_<n>, counted from 1.")
    inputs: Annotated[list[Name], Field(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="Names of inputs and earlier layers. Defaults to the layer before, at first to the only input.",
    )
    reads: ClassVar[tuple[int, int | None]] = (1, 1)
    """How many values it reads: at least, at most."""

    @property
    def kind(self) -> str:
        """Its type, which each class narrows to its own."""
        return cast(Any, self).type

    @property
    def applies(self) -> Activation | None:
        """The activation behind what it computes; None where it takes none."""
        return getattr(self, "activation", None)

    @abstractmethod
    def fit(self, values: Sequence[Value], field: str) -> tuple[LayerShape | None, Value]:
        """What the layer computes (None: nothing), and the value that it makes. Raises Refused."""

    def tensors(self, shape: LayerShape) -> dict[str, Shape]:
        """Shapes of what it trains or keeps, by the part of a file's name that follows the layer's: kernel, bias."""
        if shape.weights is None:
            return {}
        blocks, rows, columns = shape.weights
        taps = cast(Any, self).kernel if "kernel" in type(self).model_fields else None
        # A kernel over places comes as [places..., in, out], one over nothing but inputs as [in, out].
        places = (blocks * rows,) if taps is None else (*(taps if isinstance(taps, list) else [taps]), rows)
        kernel = (*places, columns)
        return {"kernel": kernel, "bias": (columns,)} if shape.bias else {"kernel": kernel}

    def limit_faults(self, shape: LayerShape, field: str) -> Iterator[Fault]:  # noqa: ARG002
        """What is too large for the engine, whatever the batch; browser_runtime/backends/webgl2 refuses the same."""
        yield from ()


class Trainable(LayerBase):
    """A layer with weights of any kind."""

    trainable: bool = Field(default=True, description="false: its weights stay as they are.")
    lr_multiplier: Annotated[Float32, Field(gt=0)] = Field(
        default=1.0, description="Of the learning rate, for its weights."
    )


class Weighted(Trainable):
    """What layers with a kernel and a bias have in common."""

    activation: Activation = "linear"
    init: Init | Number | None = Field(
        default=None, description="Defaults to he_uniform for relu and its like, else glorot_uniform."
    )
    bias_init: Literal["zeros", "ones"] | Number = "zeros"
    use_bias: bool = True

    @model_validator(mode="after")
    def _fill_in(self) -> Self:
        self.init = init_of(self.init, "he_uniform" if self.activation in RELU_LIKE else "glorot_uniform")
        return self


def _both(value: Any) -> Any:
    """One number stands for both directions."""
    return [value, value] if isinstance(value, int) and not isinstance(value, bool) else value


Extent = Annotated[int, Field(ge=1, le=1024)]
Pair = Annotated[Annotated[list[Extent], Field(min_length=2, max_length=2)] | Extent, BeforeValidator(_both)]
"""Rows and columns; a number stands for both."""


def pair(value: int | list[int] | None) -> tuple[int, int]:
    """Rows and columns of a validated field."""
    assert isinstance(value, list), "validation makes pairs of numbers"
    return value[0], value[1]


def texels(shape: Shape) -> int:
    """Texels of one sample: 4 channels each, pixel by pixel."""
    return math.prod(shape[:-1]) * math.ceil(shape[-1] / 4)


def natural(value: Value) -> Value:
    """A value as it is held where its last axis are the channels of a pixel: only a flattened image, or one whose channels were taken apart, is moved."""
    return value if value.held[-1] == value.shape[-1] else Value(value.shape, value.shape)


def image_shape(value: Value, layer: LayerBase, field: str) -> Shape:
    """[height, width, channels] of a value that must be an image."""
    if len(value.shape) != 3:
        message = f"{layer.kind} needs an input [height, width, channels], not {list(value.shape)}"
        raise Refused(Fault(field, message, layer.kind, "an input of three dimensions"))
    return value.shape


def sequence_shape(value: Value, layer: LayerBase, field: str) -> Shape:
    """[length, channels] of a value that must be a sequence."""
    if len(value.shape) != 2:
        message = f"{layer.kind} needs an input [length, channels], not {list(value.shape)}"
        raise Refused(Fault(field, message, layer.kind, "an input of two dimensions"))
    return value.shape
