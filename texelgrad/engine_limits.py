"""What the engine's planner refuses on every device: fragments that would loop too long. Said here before a job is queued.

Follows browser_runtime/backends/webgl2/{lower.js,lowering.js,kernels/}; a test holds both against each other.
Each layer knows its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from texelgrad.errors import Fault
from texelgrad.layers import Layer
from texelgrad.layers.base import MAX_SOFTMAX_CHANNELS, MAX_TRIPS, LayerShape, texels

MAX_BATCH = MAX_TRIPS * 16  # rows: the weights' gradient takes 16 a trip
_MAX_CLASSES = 4 * (MAX_TRIPS // 6)  # softmax goes through 4 classes in 6 trips


def model_faults(layers: Sequence[Layer], shapes: Sequence[LayerShape], loss: str | None) -> Iterator[Fault]:
    """What is too large whatever the batch."""
    for shape in shapes:
        layer, field = layers[shape.index], f"model.layers.{shape.index}"
        yield from layer.limit_faults(shape, field)
        if layer.applies == "softmax" and shape.output[-1] > MAX_SOFTMAX_CHANNELS:
            message = f"softmax sums {shape.output[-1]} channels, more than one fragment can"
            yield Fault(field, message, list(shape.output), f"at most {MAX_SOFTMAX_CHANNELS} channels")
    units = math.prod(shapes[-1].output)
    if texels(shapes[-1].output) >= MAX_TRIPS:
        message = "gives more values than one fragment can sum the losses of"
        legal = f"fewer than {4 * MAX_TRIPS} values a row"
        yield Fault(f"model.layers.{len(layers) - 1}", message, list(shapes[-1].output), legal)
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
