"""What the engine's planner refuses on every device: fragments that would loop too long. Said here before a job is queued.

Follows browser_runtime/backends/webgl2/{lower,kernels}.js; a test holds both against each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from texelgrad.errors import Fault
from texelgrad.network import LayerShape
from texelgrad.spec_layers import Conv2d, Dense, Flatten, Layer, MaxPool2d

MAX_TRIPS = 32_768  # of all loops of one fragment together
MAX_BATCH = MAX_TRIPS * 16  # rows: the weights' gradient takes 16 a trip
_ROW_LANES = 32
_MAX_INPUTS = 4 * (MAX_TRIPS - _ROW_LANES)  # of a dense layer: 4 a trip
_MAX_CLASSES = 4 * (MAX_TRIPS // 6)  # softmax goes through 4 classes in 6 trips
_ROWS = 4  # of samples that one fragment writes


def model_faults(
    model_input: Sequence[int], layers: Sequence[Layer], shapes: Sequence[LayerShape], loss: str | None
) -> Iterator[Fault]:
    """What is too large whatever the batch. `shapes` are those of the layers that are no flatten, in their order."""
    trained = False  # whether a layer before has weights, so that a gradient goes back through this one
    for (index, layer), shape in zip(_computing(layers), shapes, strict=True):
        field = f"model.layers.{index}"
        if isinstance(layer, Dense):
            if _texels(shape.input) > MAX_TRIPS - _ROW_LANES:
                first = shape is shapes[0]
                message = f"gives {'' if first else 'this '}dense layer more values than one fragment can sum"
                where = "model.input" if first else field
                yield Fault(
                    where, message, list(model_input if first else shape.input), _legal_inputs(shape.input)
                )
        elif isinstance(layer, Conv2d):
            taps = math.prod(_pair(layer.kernel))
            channels = max(shape.input[2], shape.output[2] if trained else 0)
            if taps * math.ceil(channels / 4) > MAX_TRIPS:
                message = f"sums {taps} places of {channels} channels, more than one fragment can"
                legal = f"height * width of at most {MAX_TRIPS // math.ceil(channels / 4)}, or fewer channels"
                yield Fault(f"{field}.kernel", message, layer.kernel, legal)
            if 1 + shape.output[1] > MAX_TRIPS:  # its weights' gradient takes a line of pixels at least
                message = "makes lines of more pixels than one fragment can sum"
                yield Fault(field, message, list(shape.output), f"a width of at most {MAX_TRIPS - 1}")
        elif _trips_of_pool(layer, trained) > MAX_TRIPS:
            message = "makes windows larger than one fragment can look through"
            yield Fault(f"{field}.size", message, layer.size, "a smaller one, or a larger stride")
        trained = trained or shape.weights is not None
    units = shapes[-1].output[-1]
    if loss == "softmax_cross_entropy" and units > _MAX_CLASSES:
        field = f"model.layers.{len(layers) - 1}.units"
        yield Fault(field, "is more classes than softmax can sum", units, f"at most {_MAX_CLASSES}")


def batch_faults(batch: int, asked: int | None) -> Iterator[Fault]:
    """Whether batches of so many rows are too large; `asked` is what the spec says of them, None for all rows."""
    if batch > MAX_BATCH:
        message = "is too long for one draw"
        if asked is None:
            message = f"makes one batch of all {batch} rows, which is too long for one draw"
        yield Fault("train.batch_size", message, asked, f"1 to {MAX_BATCH}")


def _legal_inputs(shape: tuple[int, ...]) -> str:
    if len(shape) == 1:
        return f"at most {_MAX_INPUTS} values a row"
    texels = math.ceil(shape[-1] / 4)
    return f"at most {(MAX_TRIPS - _ROW_LANES) // texels} pixels of {shape[-1]} channels"


def _trips_of_pool(layer: MaxPool2d, trained: bool) -> int:
    """Loop trips over a window, or, where a gradient goes back, over all windows that an element stands in."""
    size, stride = _pair(layer.size), _pair(layer.stride)
    windows = math.prod(math.ceil(size[axis] / stride[axis]) for axis in (0, 1))
    return math.prod(size) * (_ROWS * (1 + windows) if trained else 1)


def _texels(shape: tuple[int, ...]) -> int:
    """Texels of one sample: 4 channels each, pixel by pixel."""
    return math.prod(shape[:-1]) * math.ceil(shape[-1] / 4)


def _computing(layers: Sequence[Layer]) -> Iterator[tuple[int, Dense | Conv2d | MaxPool2d]]:
    for index, layer in enumerate(layers):
        if not isinstance(layer, Flatten):
            yield index, layer


def _pair(value: int | list[int] | None) -> tuple[int, int]:
    assert isinstance(value, list), "validation makes pairs of numbers"
    return value[0], value[1]
