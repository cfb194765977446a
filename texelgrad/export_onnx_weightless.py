"""Layers without weights in ONNX: poolings, joins, and what only moves or repeats elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from texelgrad.export_graph import Step, edges
from texelgrad.export_onnx_graph import Graph, Value
from texelgrad.layers.base import pair
from texelgrad.layers.window import Padding


def pads(padding: list[list[int]]) -> list[int]:
    """Before rows and columns, then behind them."""
    return [padding[0][0], padding[1][0], padding[0][1], padding[1][1]]


def _pool2d(operator: str, graph: Graph, step: Step, values: list[Value]) -> Value:
    """A window of rows and columns; of what pads it, neither operator takes notice."""
    layer: Any = step.layer
    window, stride = pair(layer.size), pair(layer.stride)
    around = pads(edges(step.shape, window, stride, (1, 1), layer.padding))
    made = graph.node(
        operator, [graph.first(values[0], step.name)], f"{step.name}/pooled",
        strides=stride, pads=around, kernel_shape=window,
    )  # fmt: skip
    return Value(made, 3, channels_first=True)


def _pool1d(operator: str, graph: Graph, step: Step, values: list[Value]) -> Value:
    layer: Any = step.layer
    padding: Padding = [[0, 0], layer.padding] if isinstance(layer.padding, list) else layer.padding
    lines = edges((1, *step.shape), (1, layer.size), (1, layer.stride), (1, 1), padding)
    made = graph.node(
        operator, [graph.first(values[0], step.name)], f"{step.name}/pooled",
        strides=[layer.stride], pads=lines[1], kernel_shape=[layer.size],
    )  # fmt: skip
    return Value(made, 2, channels_first=True)


def _global_pool(operator: str, graph: Graph, step: Step, values: list[Value]) -> Value:
    """One number a channel."""
    pooled = graph.node(operator, [graph.first(values[0], step.name)], f"{step.name}/pooled")
    return Value(graph.node("Flatten", [pooled], f"{step.name}/flat", axis=1), 1)


def _alike(graph: Graph, step: Step, values: list[Value]) -> tuple[list[str], bool]:
    """Values with their channels in one place, and whether that is first."""
    if all(value.channels_first == values[0].channels_first for value in values):
        return [value.name for value in values], values[0].channels_first
    return [graph.last(value, f"{step.name}/{k}") for k, value in enumerate(values)], False


def _elementwise(operator: str, graph: Graph, step: Step, values: list[Value]) -> Value:
    """Two at a time."""
    names, channels_first = _alike(graph, step, values)
    total = names[0]
    for k, name in enumerate(names[1:], 1):
        total = graph.node(operator, [total, name], f"{step.name}/{k}_joined")
    return Value(total, values[0].axes, channels_first)


def _concat(graph: Graph, step: Step, values: list[Value]) -> Value:
    names, channels_first = _alike(graph, step, values)
    made = graph.node("Concat", names, f"{step.name}/joined", axis=1 if channels_first else -1)
    return Value(made, values[0].axes, channels_first)


def _flatten(graph: Graph, step: Step, values: list[Value]) -> Value:
    return Value(graph.node("Flatten", [graph.last(values[0], step.name)], f"{step.name}/flat", axis=1), 1)


def _reshape(graph: Graph, step: Step, values: list[Value]) -> Value:
    shape = graph.constant(f"{step.name}/shape", [0, *step.output], np.int64)  # 0: as many rows as there are
    made = graph.node("Reshape", [graph.last(values[0], step.name), shape], f"{step.name}/shaped")
    return Value(made, len(step.output))


def _upsample2d(graph: Graph, step: Step, values: list[Value]) -> Value:
    layer: Any = step.layer
    scales = graph.constant(f"{step.name}/scales", [1, 1, *pair(layer.size)])
    made = graph.node(
        "Resize", [graph.first(values[0], step.name), "", scales], f"{step.name}/repeated",
        mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor",
    )  # fmt: skip
    return Value(made, 3, channels_first=True)


def _zero_pad2d(graph: Graph, step: Step, values: list[Value]) -> Value:
    layer: Any = step.layer
    (above, below), (left, right) = layer.padding
    around = graph.constant(f"{step.name}/lines", [0, 0, above, left, 0, 0, below, right], np.int64)
    made = graph.node("Pad", [graph.first(values[0], step.name), around], f"{step.name}/padded")
    return Value(made, 3, channels_first=True)


def _crop2d(graph: Graph, step: Step, values: list[Value]) -> Value:
    layer: Any = step.layer
    first = [before for before, _ in layer.cropping]
    last = [step.shape[axis] - behind for axis, (_, behind) in enumerate(layer.cropping)]
    bounds = [
        graph.constant(f"{step.name}/{name}", value, np.int64)
        for name, value in (("first", first), ("last", last), ("axes", [2, 3]))
    ]
    made = graph.node("Slice", [graph.first(values[0], step.name), *bounds], f"{step.name}/cropped")
    return Value(made, 3, channels_first=True)


def _same(_graph: Graph, _step: Step, values: list[Value]) -> Value:
    return values[0]


WEIGHTLESS: dict[str, Callable[[Graph, Step, list[Value]], Value]] = {
    "max_pool1d": partial(_pool1d, "MaxPool"),
    "max_pool2d": partial(_pool2d, "MaxPool"),
    "avg_pool1d": partial(_pool1d, "AveragePool"),
    "avg_pool2d": partial(_pool2d, "AveragePool"),
    "global_max_pool1d": partial(_global_pool, "GlobalMaxPool"),
    "global_max_pool2d": partial(_global_pool, "GlobalMaxPool"),
    "global_avg_pool1d": partial(_global_pool, "GlobalAveragePool"),
    "global_avg_pool2d": partial(_global_pool, "GlobalAveragePool"),
    "add": partial(_elementwise, "Add"),
    "multiply": partial(_elementwise, "Mul"),
    "concat": _concat,
    "flatten": _flatten,
    "reshape": _reshape,
    "upsample2d": _upsample2d,
    "zero_pad2d": _zero_pad2d,
    "crop2d": _crop2d,
    "activation": _same,
    "dropout": _same,  # outside training
}
"""What each type of layer becomes, before its activation."""
