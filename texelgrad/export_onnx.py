"""A trained model as an ONNX file that takes inputs as they are before normalisation, [rows, ...model.input], and gives the last layer's outputs.

ONNX has the channels of an image before its rows and columns: images are turned where the first layer needs it, and
back where they are flattened. Another type of layer is another entry of the table at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from texelgrad.export_graph import INPUT, Step, edges, steps, transposed_edges, unsupported
from texelgrad.layers.base import pair
from texelgrad.layers.window import Padding
from texelgrad.normalize import OFFSET, SCALE
from texelgrad.spec import JobSpec

_OPSET = 17
_IR_VERSION = 8  # that of opset 17, whatever this version of onnx would write
_FORMAT = "onnx"
Tensors = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class _Value:
    name: str
    axes: int  # of a sample
    channels_first: bool = False  # of images and sequences only


class _Graph:
    """Nodes and constants so far."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, operator: str, inputs: list[str], name: str, **attributes: Any) -> str:
        """Append a node of one output, which has the node's name."""
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def constant(self, name: str, values: Any, dtype: Any = np.float32) -> str:
        """Append a constant."""
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values, dtype), name))
        return name

    def first(self, value: _Value, name: str) -> str:
        """An image or a sequence with its channels first."""
        if value.channels_first:
            return value.name
        order = [0, value.axes, *range(1, value.axes)]
        return self.node("Transpose", [value.name], f"{name}/channels_first", perm=order)

    def last(self, value: _Value, name: str) -> str:
        """Any value with its channels last."""
        if not value.channels_first:
            return value.name
        order = [0, *range(2, value.axes + 1), 1]
        return self.node("Transpose", [value.name], f"{name}/channels_last", perm=order)

    def kernel(self, name: str) -> NDArray[Any]:
        """The kernel of a layer."""
        return self.tensors[f"{name}.kernel"]

    def bias(self, name: str) -> list[str]:
        """The bias of a layer as one more input, or none."""
        tensor = f"{name}.bias"
        return [self.constant(tensor, self.tensors[tensor])] if tensor in self.tensors else []


def to_onnx(spec: JobSpec, tensors: Tensors) -> bytes:
    """The file; the same model is the same bytes. Raises Invalid where ONNX has no form of a layer."""
    graph = _Graph(tensors)
    values = {INPUT: _Value(_normalized(graph, "x"), len(spec.model.input))}
    layers = steps(spec)
    for step in layers:
        make = _LAYERS.get(step.layer.type)
        if make is None:
            raise unsupported(_FORMAT, step, f"a layer {step.layer.type}")
        made = make(graph, step, [values[name] for name in step.inputs])
        values[step.name] = _activated(graph, step, made)
    graph.node("Identity", [graph.last(values[layers[-1].name], "y")], "y")
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "texelgrad",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", *spec.model.input])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", *layers[-1].output])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="texelgrad",
    )
    return model.SerializeToString(deterministic=True)


def _normalized(graph: _Graph, name: str) -> str:
    """The inputs as the first layer takes them: in float64, as in training."""
    if OFFSET not in graph.tensors:
        return name
    wide = graph.node("Cast", [name], "input/double", to=TensorProto.DOUBLE)
    offset, scale = (graph.constant(each, graph.tensors[each], np.float64) for each in (OFFSET, SCALE))
    moved = graph.node("Sub", [wide, offset], "input/moved")
    scaled = graph.node("Mul", [moved, scale], "input/scaled")
    return graph.node("Cast", [scaled], "input/normalized", to=TensorProto.FLOAT)


def _dense(graph: _Graph, step: Step, values: list[_Value]) -> _Value:
    kernel = graph.constant(f"{step.name}.kernel", graph.kernel(step.name))
    inputs = [values[0].name, kernel, *graph.bias(step.name)]
    return _Value(graph.node("Gemm" if len(inputs) == 3 else "MatMul", inputs, f"{step.name}/product"), 1)


def _conv2d(graph: _Graph, step: Step, values: list[_Value]) -> _Value:
    layer: Any = step.layer
    window, stride, dilation = pair(layer.kernel), pair(layer.stride), pair(layer.dilation)
    padding = edges(step.shape, window, stride, dilation, layer.padding)
    attributes = {"strides": stride, "dilations": dilation, "pads": _pads(padding), "group": layer.groups}
    return _convolution(graph, step, values, "Conv", (3, 2, 0, 1), attributes)


def _conv1d(graph: _Graph, step: Step, values: list[_Value]) -> _Value:
    layer: Any = step.layer
    padding: Padding = [[0, 0], layer.padding] if isinstance(layer.padding, list) else layer.padding
    lines = edges((1, *step.shape), (1, layer.kernel), (1, layer.stride), (1, layer.dilation), padding)
    attributes = {
        "strides": [layer.stride],
        "dilations": [layer.dilation],
        "pads": lines[1],
        "group": layer.groups,
    }
    return _convolution(graph, step, values, "Conv", (2, 1, 0), attributes)


def _conv2d_transpose(graph: _Graph, step: Step, values: list[_Value]) -> _Value:
    layer: Any = step.layer
    window, stride, dilation = pair(layer.kernel), pair(layer.stride), pair(layer.dilation)
    cut, more = transposed_edges(window, stride, dilation, layer.padding)
    attributes = {"strides": stride, "dilations": dilation, "pads": _pads(cut), "output_padding": more}
    return _convolution(graph, step, values, "ConvTranspose", (2, 3, 0, 1), attributes)


def _convolution(
    graph: _Graph,
    step: Step,
    values: list[_Value],
    operator: str,
    order: tuple[int, ...],
    attributes: dict[str, Any],
) -> _Value:
    """A convolution whose kernel's axes are put into this order."""
    kernel = graph.kernel(step.name)
    inputs = [
        graph.first(values[0], step.name),
        graph.constant(f"{step.name}.kernel", kernel.transpose(order)),
        *graph.bias(step.name),
    ]
    attributes |= {"kernel_shape": kernel.shape[:-2]}
    return _Value(
        graph.node(operator, inputs, f"{step.name}/product", **attributes),
        values[0].axes,
        channels_first=True,
    )


def _max_pool2d(graph: _Graph, step: Step, values: list[_Value]) -> _Value:
    layer: Any = step.layer
    window, stride = pair(layer.size), pair(layer.stride)
    padding = edges(step.shape, window, stride, (1, 1), layer.padding)
    made = graph.node(
        "MaxPool", [graph.first(values[0], step.name)], f"{step.name}/largest",
        strides=stride, pads=_pads(padding), kernel_shape=window,
    )  # fmt: skip
    return _Value(made, 3, channels_first=True)


def _flatten(graph: _Graph, step: Step, values: list[_Value]) -> _Value:
    return _Value(graph.node("Flatten", [graph.last(values[0], step.name)], f"{step.name}/flat", axis=1), 1)


def _add(graph: _Graph, step: Step, values: list[_Value]) -> _Value:
    alike = all(value.channels_first == values[0].channels_first for value in values)
    names = [value.name if alike else graph.last(value, f"{step.name}/{k}") for k, value in enumerate(values)]
    total = names[0]
    for k, name in enumerate(names[1:], 1):
        total = graph.node("Add", [total, name], f"{step.name}/sum_{k}")
    return _Value(total, values[0].axes, alike and values[0].channels_first)


def _embedding(graph: _Graph, step: Step, values: list[_Value]) -> _Value:
    numbers = graph.node("Cast", [values[0].name], f"{step.name}/numbers", to=TensorProto.INT64)
    table = graph.constant(f"{step.name}.kernel", graph.kernel(step.name))
    return _Value(graph.node("Gather", [table, numbers], f"{step.name}/rows", axis=0), 2)


def _batch_norm(graph: _Graph, step: Step, values: list[_Value]) -> _Value:
    """By the running statistics, as in evaluation."""
    mean, variance = (
        graph.tensors[f"{step.name}.running_{part}"].astype(np.float64) for part in ("mean", "var")
    )
    deviation = np.sqrt(variance + getattr(step.layer, "eps", 0.0))
    name = graph.last(values[0], step.name)
    for operator, part, constant in (("Sub", "mean", mean), ("Div", "deviation", deviation)):
        name = graph.node(
            operator, [name, graph.constant(f"{step.name}.{part}", constant)], f"{step.name}/{part}"
        )
    return _scaled(graph, step, name)


def _layer_norm(graph: _Graph, step: Step, values: list[_Value]) -> _Value:
    parts = [
        graph.constant(f"{step.name}.{part}", graph.tensors[f"{step.name}.{part}"])
        for part in ("gamma", "beta")
    ]
    inputs = [graph.last(values[0], step.name), *parts]
    epsilon = getattr(step.layer, "eps", 0.0)
    made = graph.node("LayerNormalization", inputs, f"{step.name}/normalized", axis=-1, epsilon=epsilon)
    return _Value(made, len(step.shape))


def _group_norm(graph: _Graph, step: Step, values: list[_Value]) -> _Value:
    """An instance normalisation of the groups: an operator of its own has few runtimes yet."""
    layer: Any = step.layer
    x = graph.first(values[0], step.name) if len(step.shape) > 1 else values[0].name
    groups = graph.constant(f"{step.name}/groups", [0, layer.groups, -1], np.int64)
    ones, zeros = (graph.constant(f"{step.name}/{v}", np.full(layer.groups, v)) for v in (1, 0))
    grouped = graph.node("Reshape", [x, groups], f"{step.name}/grouped")
    normal = graph.node(
        "InstanceNormalization", [grouped, ones, zeros], f"{step.name}/normal", epsilon=layer.eps
    )
    shape = graph.node("Shape", [x], f"{step.name}/shape")
    whole = graph.node("Reshape", [normal, shape], f"{step.name}/normalized")
    return _scaled(graph, step, graph.last(_Value(whole, len(step.shape), len(step.shape) > 1), step.name))


def _scaled(graph: _Graph, step: Step, name: str) -> _Value:
    """gamma * x + beta, by channel, which is the last axis."""
    for operator, part in (("Mul", "gamma"), ("Add", "beta")):
        constant = graph.constant(f"{step.name}.{part}", graph.tensors[f"{step.name}.{part}"])
        name = graph.node(operator, [name, constant], f"{step.name}/{part}")
    return _Value(name, len(step.shape))


def _same(_graph: _Graph, _step: Step, values: list[_Value]) -> _Value:
    return values[0]


def _pads(padding: list[list[int]]) -> list[int]:
    """Before rows and columns, then behind them."""
    return [padding[0][0], padding[1][0], padding[0][1], padding[1][1]]


def _activated(graph: _Graph, step: Step, value: _Value) -> _Value:
    """What the layer's activation makes of a value."""
    kind = getattr(step.layer, "activation", None) or getattr(step.layer, "function", None) or "linear"
    name, x = f"{step.name}/{kind}", value.name
    if kind == "linear":
        return value
    if kind == "softmax":
        made = graph.node("Softmax", [x], name, axis=1 if value.channels_first else -1)
    elif kind == "silu":
        made = graph.node("Mul", [x, graph.node("Sigmoid", [x], f"{name}/sigmoid")], name)
    elif kind == "gelu":  # an operator of its own only from opset 20 on
        half, one = (graph.constant(f"{name}/{number}", number) for number in (0.5, 1))
        inner = graph.node("Mul", [x, graph.constant(f"{name}/root", math.sqrt(0.5))], f"{name}/scaled")
        share = graph.node("Add", [graph.node("Erf", [inner], f"{name}/erf"), one], f"{name}/share")
        made = graph.node("Mul", [graph.node("Mul", [x, half], f"{name}/half"), share], name)
    elif kind in _ACTIVATIONS:
        operator, attributes = _ACTIVATIONS[kind]
        made = graph.node(operator, [x], name, **attributes)
    else:
        raise unsupported(_FORMAT, step, f"whose activation is {kind}")
    return _Value(made, value.axes, value.channels_first)


_ACTIVATIONS: dict[str, tuple[str, dict[str, float]]] = {
    "relu": ("Relu", {}),
    "leaky_relu": ("LeakyRelu", {"alpha": 0.01}),
    "elu": ("Elu", {"alpha": 1.0}),
    "sigmoid": ("Sigmoid", {}),
    "tanh": ("Tanh", {}),
    "softplus": ("Softplus", {}),
    "hard_sigmoid": ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}),
    "hard_swish": ("HardSwish", {}),
}

_LAYERS: dict[str, Callable[[_Graph, Step, list[_Value]], _Value]] = {
    "dense": _dense,
    "conv1d": _conv1d,
    "conv2d": _conv2d,
    "conv2d_transpose": _conv2d_transpose,
    "max_pool2d": _max_pool2d,
    "flatten": _flatten,
    "add": _add,
    "activation": _same,
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "embedding": _embedding,
}
"""What each type of layer becomes, before its activation."""
