"""Shapes of a model's layers, and what each computes: the page's nn/model.js infers the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from texelgrad.errors import Fault
from texelgrad.spec_layers import Conv2d, Dense, Flatten, Layer, MaxPool2d


@dataclass(frozen=True)
class LayerShape:
    """One layer, its input and output ([channels] or [height, width, channels]) and its weights."""

    input: tuple[int, ...]
    output: tuple[int, ...]
    weights: tuple[int, int, int] | None = None  # blocks, rows of each, columns; the bias not counted
    pixels: int = 1  # places at which the weights are applied

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return math.prod(self.weights) + self.weights[2] if self.weights else 0

    @property
    def products(self) -> int:
        """Multiply-adds of the forward pass for one sample, the bias as one."""
        return self.parameters * self.pixels


def trace(model_input: Sequence[int], layers: Sequence[Layer]) -> list[LayerShape]:
    """The shapes of layers that fit each other (`shape_faults` is empty)."""
    shapes: list[LayerShape] = []
    shape = tuple(model_input)
    for layer in layers:
        if isinstance(layer, Flatten):
            # An input is uploaded flat; anything else keeps its pixels until a dense layer reads it.
            shape = shape if shapes else (math.prod(shape),)
            continue
        shapes.append(_layer(layer, shape))
        shape = shapes[-1].output
    return shapes


def _layer(layer: Dense | Conv2d | MaxPool2d, shape: tuple[int, ...]) -> LayerShape:
    if isinstance(layer, Dense):
        return LayerShape(shape, (layer.units,), (math.prod(shape[:-1]), shape[-1], layer.units))
    if isinstance(layer, Conv2d):
        kernel = _pair(layer.kernel)
        size = _slide(shape, kernel, _pair(layer.stride), _pair(layer.dilation), layer.padding)
        output = (*size, layer.filters)
        return LayerShape(shape, output, (math.prod(kernel), shape[2], layer.filters), math.prod(size))
    window = _pair(layer.size)
    return LayerShape(shape, (*_slide(shape, window, _pair(layer.stride), (1, 1), layer.padding), shape[2]))


def _pair(value: int | list[int] | None) -> tuple[int, int]:
    """Rows and columns of a validated field."""
    assert isinstance(value, list), "validation makes pairs of numbers"
    return value[0], value[1]


def _slide(
    shape: tuple[int, ...],
    window: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: str | list[list[int]],
) -> tuple[int, int]:
    """Height and width of what a sliding window makes; not positive where it does not fit."""

    def axis(i: int) -> int:
        extent = (window[i] - 1) * dilation[i] + 1
        if padding == "same":
            return math.ceil(shape[i] / stride[i])
        padded = shape[i] + (sum(padding[i]) if isinstance(padding, list) else 0)
        return (padded - extent) // stride[i] + 1

    return axis(0), axis(1)


def shape_faults(model_input: Sequence[int], layers: Sequence[Layer]) -> Iterator[Fault]:
    """Where a layer does not fit what the one before gives it; shapes behind the first such are unknown."""
    shape, flat = tuple(model_input), len(model_input) == 1
    for index, layer in enumerate(layers):
        field = f"model.layers.{index}"
        if isinstance(layer, Flatten):
            flat = True
            continue
        if isinstance(layer, Dense):
            if not flat:
                message = f"dense needs a flat input, not {list(shape)}"
                yield Fault(field, message, layer.type, "a flatten layer before it")
            shape, flat = (layer.units,), True
            continue
        if flat or len(shape) != 3:
            message = f"{layer.type} needs an input [height, width, channels], not {list(shape)}"
            yield Fault(field, message, layer.type, "three dimensions, no flatten or dense layer before it")
            return
        made = _layer(layer, shape)
        if min(made.output) < 1:
            message = (
                f"its window does not fit an input of {shape[0]} x {shape[1]} with padding {layer.padding}"
            )
            yield Fault(field, message, layer.type, "a smaller window, or padding")
            return
        if isinstance(layer, MaxPool2d) and isinstance(layer.padding, list):
            window = _pair(layer.size)
            if any(edge >= window[axis] for axis in (0, 1) for edge in layer.padding[axis]):
                message = "a window may not lie in the padding alone"
                yield Fault(f"{field}.padding", message, layer.padding, f"below the size {list(window)}")
        shape, flat = made.output, False
