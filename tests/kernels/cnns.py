"""Job specs, data and weights of small convolutional nets, beside the dense ones of specs.py."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .specs import OPTIMIZERS, Array, Spec, data_for
from .windows import Window, pair

Layer = dict[str, Any]
Shape = tuple[int, ...]


def conv(filters: int, kernel: int | tuple[int, int] = 3, activation: str = "relu", **fields: Any) -> Layer:
    """A convolution; fields: stride, padding, dilation."""
    return {"type": "conv2d", "filters": filters, "kernel": kernel, "activation": activation, **fields}


def pool(size: int | tuple[int, int] = 2, **fields: Any) -> Layer:
    """A max pooling; fields: stride, padding."""
    return {"type": "max_pool2d", "size": size, **fields}


def dense(units: int, activation: str = "linear") -> Layer:
    """A dense layer."""
    return {"type": "dense", "units": units, "activation": activation}


FLATTEN: Layer = {"type": "flatten"}


def cnn(
    shape: Shape, layers: list[Layer], loss: str = "mse", *, optimizer: str | dict[str, Any] = "sgd",
    steps: int = 10, seed: int = 1, **train: Any,
) -> Spec:  # fmt: skip
    """A spec of these layers over inputs [height, width, channels]."""
    return {
        "model": {"input": list(shape), "layers": layers},
        "loss": loss,
        "metrics": [] if loss == "mse" else ["accuracy"],
        "optimizer": OPTIMIZERS[optimizer] if isinstance(optimizer, str) else optimizer,
        "train": {"seed": seed, "steps": steps, **train},
    }


def output_shape(layer: Layer, shape: Shape) -> Shape:
    """What a layer makes of an input of this shape."""
    match layer["type"]:
        case "flatten":
            return (math.prod(shape),)
        case "dense":
            return (layer["units"],)
        case _:
            return (*Window.of_layer(layer, shape).output, layer.get("filters", shape[-1]))


def named_layers(spec: Spec) -> list[tuple[str, Layer, Shape]]:
    """Name, layer and input shape of every layer."""
    shape: Shape = tuple(spec["model"]["input"])
    found: list[tuple[str, Layer, Shape]] = []
    for layer in spec["model"]["layers"]:
        number = 1 + sum(other["type"] == layer["type"] for _, other, _ in found)
        found.append((f"{layer['type']}_{number}", layer, shape))
        shape = output_shape(layer, shape)
    return found


def kernel_shapes(spec: Spec) -> dict[str, Shape]:
    """The kernel of each layer that has one: [in, units] or [height, width, in, filters]."""
    shapes: dict[str, Shape] = {}
    for name, layer, shape in named_layers(spec):
        if layer["type"] == "conv2d":
            shapes[name] = (*pair(layer["kernel"]), shape[-1], layer["filters"])
        elif layer["type"] == "dense":
            shapes[name] = (shape[-1], layer["units"])
    return shapes


def weights_of(spec: Spec, *, seed: int = 1) -> dict[str, Array]:
    """Kernels that keep unit variance from layer to layer, and biases that are not 0."""
    random = np.random.default_rng(seed + 100)
    weights: dict[str, Array] = {}
    for name, shape in kernel_shapes(spec).items():
        kernel = random.normal(size=shape) / np.sqrt(math.prod(shape[:-1]))
        weights[f"{name}.kernel"] = kernel.astype(np.float32)
        weights[f"{name}.bias"] = (0.5 * random.normal(size=shape[-1])).astype(np.float32)
    return weights


def images_for(spec: Spec, rows: int, *, labels: str = "index", seed: int = 1) -> tuple[Array, Array]:
    """Normal images, and targets that the spec's loss can take."""
    shape = spec["model"]["input"]
    outputs = spec["model"]["layers"][-1]["units"]
    x, y = data_for(rows, math.prod(shape), outputs, spec["loss"], labels=labels, seed=seed)
    return x.reshape(rows, *shape), y
