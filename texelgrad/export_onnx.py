"""A trained model as an ONNX file that takes inputs as they are before normalisation, [rows, ...shape], and gives the last layer's outputs.

ONNX has the channels of an image before its rows and columns: images are turned where the first layer needs it, and
back where they are flattened. Another type of layer is another entry of the table at the end, or of WEIGHTLESS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from texelgrad.export_graph import Step, edges, steps, transposed_edges, unsupported
from texelgrad.export_onnx_file import onnx_pieces
from texelgrad.export_onnx_graph import Graph, Value
from texelgrad.export_onnx_weightless import WEIGHTLESS, pads
from texelgrad.inputs import Shape, array_of, inputs_of
from texelgrad.layers.base import pair
from texelgrad.layers.window import Padding
from texelgrad.normalize import tensors_of
from texelgrad.spec import JobSpec
from texelgrad.tensor_file import Pieces, Tensors

_OPSET = 17
_IR_VERSION = 8  # that of opset 17, whatever this version of onnx would write
_FORMAT = "onnx"


def to_onnx(spec: JobSpec, tensors: Tensors) -> Pieces:
    """The file, piece by piece; the same model is the same bytes. Raises Invalid where ONNX has no form of a layer."""
    graph = Graph(tensors)
    inputs = inputs_of(spec.model.input)
    values = {name: Value(_normalized(graph, name), len(shape)) for name, shape in inputs.items()}
    layers = steps(spec)
    for step in layers:
        make = LAYERS.get(step.layer.type)
        if make is None:
            raise unsupported(_FORMAT, step, f"a layer {step.layer.type}")
        made = make(graph, step, [values[name] for name in step.inputs])
        values[step.name] = _activated(graph, step, made)
    graph.node("Identity", [graph.last(values[layers[-1].name], "y")], "y")
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "texelgrad",
            [_described(array_of(name), shape) for name, shape in inputs.items()],
            [_described("y", layers[-1].output)],
        ),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="texelgrad",
    )
    return onnx_pieces(model, graph.constants)


def _described(name: str, shape: Shape) -> Any:
    """An input or output of the graph, of any number of rows."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", *shape])


def _normalized(graph: Graph, name: str) -> str:
    """An input as layers take it: in float64, as in training."""
    names = tensors_of(name)
    if names[0] not in graph.tensors:
        return array_of(name)
    wide = graph.node("Cast", [array_of(name)], f"{name}/double", to=TensorProto.DOUBLE)
    offset, scale = (graph.constant(each, graph.tensors[each], np.float64) for each in names)
    moved = graph.node("Sub", [wide, offset], f"{name}/moved")
    scaled = graph.node("Mul", [moved, scale], f"{name}/scaled")
    return graph.node("Cast", [scaled], f"{name}/normalized", to=TensorProto.FLOAT)


def _dense(graph: Graph, step: Step, values: list[Value]) -> Value:
    kernel = graph.constant(f"{step.name}.kernel", graph.kernel(step.name))
    inputs = [values[0].name, kernel, *graph.bias(step.name)]
    return Value(graph.node("Gemm" if len(inputs) == 3 else "MatMul", inputs, f"{step.name}/product"), 1)


def _conv2d(graph: Graph, step: Step, values: list[Value]) -> Value:
    layer: Any = step.layer
    window, stride, dilation = pair(layer.kernel), pair(layer.stride), pair(layer.dilation)
    padding = edges(step.shape, window, stride, dilation, layer.padding)
    attributes = {"strides": stride, "dilations": dilation, "pads": pads(padding), "group": layer.groups}
    return _convolution(graph, step, values, "Conv", (3, 2, 0, 1), attributes)


def _conv1d(graph: Graph, step: Step, values: list[Value]) -> Value:
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


def _conv2d_transpose(graph: Graph, step: Step, values: list[Value]) -> Value:
    layer: Any = step.layer
    window, stride, dilation = pair(layer.kernel), pair(layer.stride), pair(layer.dilation)
    cut, more = transposed_edges(window, stride, dilation, layer.padding)
    attributes = {"strides": stride, "dilations": dilation, "pads": pads(cut), "output_padding": more}
    return _convolution(graph, step, values, "ConvTranspose", (2, 3, 0, 1), attributes)


def _convolution(
    graph: Graph,
    step: Step,
    values: list[Value],
    operator: str,
    order: tuple[int, ...],
    attributes: dict[str, Any],
) -> Value:
    """A convolution whose kernel's axes are put into this order."""
    kernel = graph.kernel(step.name)
    inputs = [
        graph.first(values[0], step.name),
        graph.constant(f"{step.name}.kernel", kernel.transpose(order)),
        *graph.bias(step.name),
    ]
    attributes |= {"kernel_shape": kernel.shape[:-2]}
    return Value(
        graph.node(operator, inputs, f"{step.name}/product", **attributes),
        values[0].axes,
        channels_first=True,
    )


def _embedding(graph: Graph, step: Step, values: list[Value]) -> Value:
    numbers = graph.node("Cast", [values[0].name], f"{step.name}/numbers", to=TensorProto.INT64)
    table = graph.constant(f"{step.name}.kernel", graph.kernel(step.name))
    return Value(graph.node("Gather", [table, numbers], f"{step.name}/rows", axis=0), 2)


def _batch_norm(graph: Graph, step: Step, values: list[Value]) -> Value:
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


def _layer_norm(graph: Graph, step: Step, values: list[Value]) -> Value:
    parts = [
        graph.constant(f"{step.name}.{part}", graph.tensors[f"{step.name}.{part}"])
        for part in ("gamma", "beta")
    ]
    inputs = [graph.last(values[0], step.name), *parts]
    epsilon = getattr(step.layer, "eps", 0.0)
    made = graph.node("LayerNormalization", inputs, f"{step.name}/normalized", axis=-1, epsilon=epsilon)
    return Value(made, len(step.shape))


def _group_norm(graph: Graph, step: Step, values: list[Value]) -> Value:
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
    return _scaled(graph, step, graph.last(Value(whole, len(step.shape), len(step.shape) > 1), step.name))


def _scaled(graph: Graph, step: Step, name: str) -> Value:
    """gamma * x + beta, by channel, which is the last axis."""
    for operator, part in (("Mul", "gamma"), ("Add", "beta")):
        constant = graph.constant(f"{step.name}.{part}", graph.tensors[f"{step.name}.{part}"])
        name = graph.node(operator, [name, constant], f"{step.name}/{part}")
    return Value(name, len(step.shape))


def _activated(graph: Graph, step: Step, value: Value) -> Value:
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
    return Value(made, value.axes, value.channels_first)


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

LAYERS: dict[str, Callable[[Graph, Step, list[Value]], Value]] = {
    "dense": _dense,
    "conv1d": _conv1d,
    "conv2d": _conv2d,
    "conv2d_transpose": _conv2d_transpose,
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "embedding": _embedding,
    **WEIGHTLESS,
}
"""What each type of layer becomes, before its activation."""
