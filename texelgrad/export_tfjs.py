"""A trained model as TensorFlow.js loads it (tf.loadLayersModel): a zip of model.json and its weights in shards.

It takes inputs as they are before normalisation and gives the last layer's outputs. Another type of layer is another
entry of the table at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from texelgrad.export_graph import Step, edges, steps, transposed_edges, unsupported
from texelgrad.export_tfjs_model import Made, Model, add_input, files
from texelgrad.inputs import array_of, inputs_of
from texelgrad.layers.base import pair
from texelgrad.spec import JobSpec
from texelgrad.tensor_file import Tensors

_FORMAT = "tfjs"


def to_tfjs(spec: JobSpec, tensors: Tensors) -> Iterator[tuple[str, bytes]]:
    """The files with their names, one after another; the same model is the same bytes. Raises Invalid where Keras has no form of a layer."""
    model = Model(tensors)
    inputs = inputs_of(spec.model.input)
    names = {name: add_input(model, name, shape) for name, shape in inputs.items()}
    for step in steps(spec):
        make = LAYERS.get(step.layer.type)
        if make is None:
            raise unsupported(_FORMAT, step, f"a layer {step.layer.type}")
        names[step.name] = make(model, step, [names[name] for name in step.inputs])
    last = names[str(spec.model.layers[-1].name)]
    config = {
        "name": "texelgrad",
        "layers": model.layers,
        "input_layers": [[array_of(name), 0, 0] for name in inputs],
        "output_layers": [[last, 0, 0]],
    }
    return files(config, model.weights)


def _dense(model: Model, step: Step, inputs: list[str]) -> str:
    layer: Any = step.layer
    weights = model.parameters(step.name)
    return _activated(
        model, step, ("Dense", {"units": layer.units, "use_bias": "bias" in weights}, weights), inputs
    )


def _conv2d(model: Model, step: Step, inputs: list[str]) -> str:
    layer: Any = step.layer
    stride, dilation = pair(layer.stride), pair(layer.dilation)
    if max(stride) > 1 and max(dilation) > 1:
        raise unsupported(_FORMAT, step, "a convolution with both a stride and a dilation")
    padding = layer.padding
    if isinstance(padding, list):
        lines = edges(step.shape, pair(layer.kernel), stride, dilation, layer.padding)
        config = {"padding": lines, "data_format": "channels_last"}
        inputs, padding = [model.add(f"{step.name}.padding", ("ZeroPadding2D", config, {}), inputs)], "valid"
    weights = model.parameters(step.name)
    config = {
        "kernel_size": list(layer.kernel), "strides": list(stride), "padding": padding,
        "dilation_rate": list(dilation), "data_format": "channels_last", "use_bias": "bias" in weights,
    }  # fmt: skip
    if layer.groups == 1:
        return _activated(model, step, ("Conv2D", {"filters": layer.filters, **config}, weights), inputs)
    if layer.groups != step.shape[2]:
        raise unsupported(_FORMAT, step, "a convolution in groups of several channels")
    kernel = weights.pop("kernel")
    each = layer.filters // layer.groups
    turned = {"depthwise_kernel": kernel.reshape(*kernel.shape[:2], layer.groups, each), **weights}
    return _activated(model, step, ("DepthwiseConv2D", {"depth_multiplier": each, **config}, turned), inputs)


def _conv1d(model: Model, step: Step, inputs: list[str]) -> str:
    layer: Any = step.layer
    if layer.groups > 1 or (layer.stride > 1 and layer.dilation > 1):
        raise unsupported(
            _FORMAT, step, "a sequence's convolution in groups, or with both a stride and a dilation"
        )
    if not isinstance(layer.padding, str):
        raise unsupported(_FORMAT, step, "a sequence's convolution with explicit padding")
    weights = model.parameters(step.name)
    config = {
        "filters": layer.filters, "kernel_size": [layer.kernel], "strides": [layer.stride], "padding": layer.padding,
        "dilation_rate": [layer.dilation], "data_format": "channels_last", "use_bias": "bias" in weights,
    }  # fmt: skip
    return _activated(model, step, ("Conv1D", config, weights), inputs)


def _conv2d_transpose(model: Model, step: Step, inputs: list[str]) -> str:
    layer: Any = step.layer
    if max(pair(layer.dilation)) > 1:
        raise unsupported(_FORMAT, step, "a transposed convolution with a dilation")
    weights = model.parameters(step.name)
    weights["kernel"] = weights["kernel"].transpose(0, 1, 3, 2)
    explicit = isinstance(layer.padding, list)
    config = {
        "filters": layer.filters, "kernel_size": list(layer.kernel), "strides": list(layer.stride),
        "padding": "valid" if explicit else layer.padding, "data_format": "channels_last", "use_bias": "bias" in weights,
    }  # fmt: skip
    made: Made = ("Conv2DTranspose", config, weights)
    if not explicit:
        return _activated(model, step, made, inputs)
    whole = model.add(f"{step.name}.whole", made, inputs)
    _, more = transposed_edges(pair(layer.kernel), pair(layer.stride), (1, 1), "valid")
    lines = [[before, behind + more[axis]] for axis, (before, behind) in enumerate(layer.padding)]
    cropped: Made = ("Cropping2D", {"cropping": lines, "data_format": "channels_last"}, {})
    return _activated(model, step, cropped, [whole])


def _pool(kind: str, model: Model, step: Step, inputs: list[str]) -> str:
    layer: Any = step.layer
    padding = layer.padding
    if isinstance(padding, list):
        if np.any(padding):
            what = "a pooling with explicit padding, which Keras would fill with zeros"
            raise unsupported(_FORMAT, step, what)
        padding = "valid"
    size, strides = ([each] if isinstance(each, int) else each for each in (layer.size, layer.stride))
    config = {"pool_size": size, "strides": strides, "padding": padding, "data_format": "channels_last"}
    return model.add(step.name, (kind, config, {}), inputs)


def _plain(kind: str, model: Model, step: Step, inputs: list[str]) -> str:
    """A layer whose class says all, but for its activation."""
    read: list[str] = []
    for k, name in enumerate(inputs):
        if name in read:  # TensorFlow.js would count two readers, and free it before others have read it
            name = model.add(f"{step.name}.{k}", ("Reshape", {"target_shape": list(step.shape)}, {}), [name])  # noqa: PLW2901
        read.append(name)
    return _activated(model, step, (kind, {}, {}), read)


def _same(_model: Model, _step: Step, inputs: list[str]) -> str:
    """No layer at all: TensorFlow.js would free what one answers as it came while others may still read it."""
    return inputs[0]


def _moved(kind: str, fields: dict[str, str], model: Model, step: Step, inputs: list[str]) -> str:
    """A layer whose fields Keras has by other names."""
    config = {keras: getattr(step.layer, ours) for keras, ours in fields.items()}
    return model.add(step.name, (kind, config | {"data_format": "channels_last"}, {}), inputs)


def _embedding(model: Model, step: Step, inputs: list[str]) -> str:
    layer: Any = step.layer
    weights = {"embeddings": model.tensors[f"{step.name}.kernel"]}
    config = {"input_dim": layer.vocabulary, "output_dim": layer.units, "input_length": step.shape[0]}
    return model.add(step.name, ("Embedding", config, weights), inputs)


def _batch_norm(model: Model, step: Step, inputs: list[str]) -> str:
    names = {
        "gamma": "gamma",
        "beta": "beta",
        "moving_mean": "running_mean",
        "moving_variance": "running_var",
    }
    weights = {keras: model.tensors[f"{step.name}.{ours}"] for keras, ours in names.items()}
    config = {"axis": -1, "epsilon": getattr(step.layer, "eps", 0.0)}
    return _activated(model, step, ("BatchNormalization", config, weights), inputs)


def _layer_norm(model: Model, step: Step, inputs: list[str]) -> str:
    weights = {part: model.tensors[f"{step.name}.{part}"] for part in ("gamma", "beta")}
    config = {"axis": -1, "epsilon": getattr(step.layer, "eps", 0.0)}
    return _activated(model, step, ("LayerNormalization", config, weights), inputs)


def _group_norm(model: Model, step: Step, inputs: list[str]) -> str:
    """Keras for TensorFlow.js has no such layer: one that normalises pixels and a group's channels, then one that scales."""
    layer: Any = step.layer
    channels = step.shape[-1]
    pixels = math.prod(step.shape[:-1])
    name = model.add(
        f"{step.name}.groups",
        ("Reshape", {"target_shape": [pixels, layer.groups, channels // layer.groups]}, {}),
        inputs,
    )
    normal = {"axis": [1, 3], "epsilon": layer.eps, "center": False, "scale": False}  # 0 is the sample
    name = model.add(f"{step.name}.normal", ("LayerNormalization", normal, {}), [name])
    name = model.add(f"{step.name}.channels", ("Reshape", {"target_shape": list(step.shape)}, {}), [name])
    weights = {part: model.tensors[f"{step.name}.{part}"] for part in ("gamma", "beta")}
    weights |= {"moving_mean": np.zeros(channels), "moving_variance": np.ones(channels)}
    return _activated(model, step, ("BatchNormalization", {"axis": -1, "epsilon": 0}, weights), [name])


def _activation(model: Model, step: Step, inputs: list[str]) -> str:
    kind = getattr(step.layer, "function", "linear")
    if kind == "linear":
        return _same(model, step, inputs)
    return model.add(step.name, _keras(step, kind), inputs)


def _activated(model: Model, step: Step, made: Made, inputs: list[str]) -> str:
    """The layer, and its activation as a layer of its own."""
    kind = getattr(step.layer, "activation", "linear")
    if kind == "linear":
        return model.add(step.name, made, inputs)
    return model.add(f"{step.name}.{kind}", _keras(step, kind), [model.add(step.name, made, inputs)])


def _keras(step: Step, kind: str) -> Made:
    if kind == "leaky_relu":
        return "LeakyReLU", {"alpha": 0.01}, {}
    if kind not in _ACTIVATIONS:
        raise unsupported(_FORMAT, step, f"whose activation is {kind}")
    return "Activation", {"activation": _ACTIVATIONS[kind]}, {}


# Keras' hard_sigmoid is another function, and TensorFlow.js has no hard_swish.
_ACTIVATIONS = {
    "relu": "relu", "elu": "elu", "gelu": "gelu", "silu": "swish", "sigmoid": "sigmoid",
    "tanh": "tanh", "softplus": "softplus", "softmax": "softmax",
}  # fmt: skip

LAYERS: dict[str, Callable[[Model, Step, list[str]], str]] = {
    "dense": _dense,
    "conv1d": _conv1d,
    "conv2d": _conv2d,
    "conv2d_transpose": _conv2d_transpose,
    "max_pool1d": partial(_pool, "MaxPooling1D"),
    "max_pool2d": partial(_pool, "MaxPooling2D"),
    "avg_pool1d": partial(_pool, "AveragePooling1D"),
    "avg_pool2d": partial(_pool, "AveragePooling2D"),
    "global_max_pool1d": partial(_plain, "GlobalMaxPooling1D"),
    "global_max_pool2d": partial(_moved, "GlobalMaxPooling2D", {}),
    "global_avg_pool1d": partial(_plain, "GlobalAveragePooling1D"),
    "global_avg_pool2d": partial(_moved, "GlobalAveragePooling2D", {}),
    "flatten": partial(_moved, "Flatten", {}),
    "reshape": partial(_moved, "Reshape", {"target_shape": "shape"}),
    "upsample2d": partial(_moved, "UpSampling2D", {"size": "size"}),
    "zero_pad2d": partial(_moved, "ZeroPadding2D", {"padding": "padding"}),
    "crop2d": partial(_moved, "Cropping2D", {"cropping": "cropping"}),
    "add": partial(_plain, "Add"),
    "multiply": partial(_plain, "Multiply"),
    "concat": partial(_plain, "Concatenate"),
    "dropout": _same,  # outside training
    "activation": _activation,
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "embedding": _embedding,
}
"""What each type of layer becomes."""
