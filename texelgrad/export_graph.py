"""What exporters of a trained model have in common: its layers in order, what each reads, and the shapes in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from texelgrad.errors import Fault, Invalid
from texelgrad.inputs import Shape, inputs_of
from texelgrad.layers import Layer
from texelgrad.layers.base import Value
from texelgrad.layers.window import Padding
from texelgrad.spec import JobSpec


@dataclass(frozen=True)
class Step:
    """One layer of the model."""

    name: str
    layer: Layer
    inputs: list[str]  # names of inputs and earlier layers
    shape: Shape  # of what the first of them is for one sample, as users see it
    output: Shape  # of what it makes
    field: str  # of the spec


def steps(spec: JobSpec) -> list[Step]:
    """The layers of a valid spec."""
    return list(_steps(spec))


def _steps(spec: JobSpec) -> Iterator[Step]:
    shapes = inputs_of(spec.model.input)
    made = {name: Value(shape, shape, data=True) for name, shape in shapes.items()}
    (before, *_) = shapes  # what the first layer reads where it does not say
    for index, layer in enumerate(spec.model.layers):
        name, inputs, field = str(layer.name), layer.inputs or [before], f"model.layers.{index}"
        _, made[name] = layer.fit([made[each] for each in inputs], field)
        yield Step(name, layer, inputs, made[inputs[0]].shape, made[name].shape, field)
        before = name


def edges(
    shape: Shape,
    window: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: Padding,
) -> list[list[int]]:
    """Lines before and behind, [[above, below], [left, right]], whatever form the spec has; `same` as TensorFlow."""
    if isinstance(padding, list):
        return padding
    if padding == "valid":
        return [[0, 0], [0, 0]]
    found: list[list[int]] = []
    for axis in (0, 1):
        extent = (window[axis] - 1) * dilation[axis] + 1
        places = -(-shape[axis] // stride[axis])
        lines = max(0, (places - 1) * stride[axis] + extent - shape[axis])
        found.append([lines // 2, lines - lines // 2])
    return found


def transposed_edges(
    window: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int], padding: Padding
) -> tuple[list[list[int]], list[int]]:
    """Of a transposed convolution: lines cut off before and behind what its kernels touch, and lines added behind."""
    if isinstance(padding, list):
        return padding, [0, 0]
    extents = [(window[axis] - 1) * dilation[axis] + 1 for axis in (0, 1)]
    beyond = [max(0, extents[axis] - stride[axis]) if padding == "same" else 0 for axis in (0, 1)]
    cut = [[lines // 2, lines - lines // 2] for lines in beyond]
    return cut, [max(0, stride[axis] - extents[axis]) for axis in (0, 1)]


def unsupported(format_name: str, step: Step, what: str) -> Invalid:
    """What to raise for a layer that the format has no words for."""
    message = f"has no form of {step.name}, {what} ({step.field})"
    return Invalid([Fault("format", message, format_name, "safetensors, npz or another format")])
