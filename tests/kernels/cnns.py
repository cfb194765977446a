"""Job specs, data and weights of small convolutional nets, beside the dense ones of specs.py."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .layer_models import MODELS, Layer, Shape
from .specs import OPTIMIZERS, Array, Spec, data_for


def conv(filters: int, kernel: int | tuple[int, int] = 3, activation: str = "relu", **fields: Any) -> Layer:
    """A convolution; fields: stride, padding, dilation."""
    return {"type": "conv2d", "filters": filters, "kernel": kernel, "activation": activation, **fields}


def conv1d(filters: int, kernel: int = 3, activation: str = "relu", **fields: Any) -> Layer:
    """A convolution of one dimension; fields: stride, padding, dilation, groups."""
    return {"type": "conv1d", "filters": filters, "kernel": kernel, "activation": activation, **fields}


def embedding(vocabulary: int, units: int, **fields: Any) -> Layer:
    """Rows of a table by their numbers."""
    return {"type": "embedding", "vocabulary": vocabulary, "units": units, **fields}


def transpose(
    filters: int, kernel: int | tuple[int, int] = 3, activation: str = "relu", **fields: Any
) -> Layer:
    """A transposed convolution; fields: stride, padding, dilation."""
    return conv(filters, kernel, activation, **fields) | {"type": "conv2d_transpose"}


def pool(size: int | tuple[int, int] = 2, **fields: Any) -> Layer:
    """A max pooling; fields: stride, padding."""
    return {"type": "max_pool2d", "size": size, **fields}


def dense(units: int, activation: str = "linear", **fields: Any) -> Layer:
    """A dense layer."""
    return {"type": "dense", "units": units, "activation": activation, **fields}


def add(*inputs: str, activation: str = "linear", **fields: Any) -> Layer:
    """A sum of layers by their names."""
    return {"type": "add", "inputs": list(inputs), "activation": activation, **fields}


def activation(function: str, **fields: Any) -> Layer:
    """An activation as a layer of its own."""
    return {"type": "activation", "function": function, **fields}


FLATTEN: Layer = {"type": "flatten"}


def cnn(
    shape: Shape | dict[str, Shape], layers: list[Layer], loss: str | dict[str, Any] = "mse", *, optimizer: str | dict[str, Any] = "sgd",
    steps: int = 10, seed: int = 1, **train: Any,
) -> Spec:  # fmt: skip
    """A spec of these layers over inputs [height, width, channels], or over several by name."""
    given = {name: list(one) for name, one in shape.items()} if isinstance(shape, dict) else list(shape)
    return {
        "model": {"input": given, "layers": layers},
        "loss": loss,
        "metrics": ["accuracy"] if loss in ("bce", "softmax_cross_entropy") else [],
        "optimizer": OPTIMIZERS[optimizer] if isinstance(optimizer, str) else optimizer,
        "train": {"seed": seed, "steps": steps, **train},
    }


@dataclass(frozen=True)
class Node:
    """A layer in its place: its name, and the names and shapes of what it reads."""

    name: str
    layer: Layer
    inputs: list[str]
    shapes: list[Shape]

    @property
    def output(self) -> Shape:
        """What it makes."""
        return MODELS[self.layer["type"]].output(self.layer, self.shapes)

    @property
    def weights(self) -> dict[str, Shape]:
        """Shapes of its weights by the names under which they are exported."""
        parts = MODELS[self.layer["type"]].weights(self.layer, self.shapes)
        return {f"{self.name}.{part}": shape for part, shape in parts.items()}

    def initial(self, name: str) -> float:
        """What a weight by its name begins as, unless it is drawn."""
        return MODELS[self.layer["type"]].initial.get(name.rpartition(".")[2], 0)

    @property
    def buffers(self) -> list[str]:
        """Names of those that steps write and nothing trains."""
        return [f"{self.name}.{part}" for part in MODELS[self.layer["type"]].buffers]


def output_shape(layer: Layer, shape: Shape) -> Shape:
    """What a layer makes of one input of this shape."""
    return MODELS[layer["type"]].output(layer, [shape])


def inputs_of(spec: Spec) -> dict[str, Shape]:
    """Shapes of the inputs by name."""
    given = spec["model"]["input"]
    return {
        name: tuple(shape) for name, shape in (given if isinstance(given, dict) else {"input": given}).items()
    }


def nodes(spec: Spec) -> list[Node]:
    """The layers with their names, each reading the one before it unless it says otherwise."""
    shapes = inputs_of(spec)
    found: list[Node] = []
    before = next(iter(shapes))
    for layer in spec["model"]["layers"]:
        number = 1 + sum(node.layer["type"] == layer["type"] for node in found)
        name = layer.get("name") or f"{layer['type']}_{number}"
        inputs = layer.get("inputs") or [before]
        # what the masks of a dropout layer are drawn from
        draw = {"draw": (spec["train"].get("seed", 0), number - 1)} if layer["type"] == "dropout" else {}
        node = Node(name, layer | draw, inputs, [shapes[other] for other in inputs])
        found.append(node)
        shapes[name] = node.output
        before = name
    return found


def named_layers(spec: Spec) -> list[tuple[str, Layer, Shape]]:
    """Name, layer and shape of the first input of every layer."""
    return [(node.name, node.layer, node.shapes[0]) for node in nodes(spec)]


def buffers_of(spec: Spec) -> list[str]:
    """Names of all that steps write and nothing trains."""
    return [name for node in nodes(spec) for name in node.buffers]


def untrained(spec: Spec) -> list[str]:
    """Names of all that has no gradient: buffers, and the weights of frozen layers."""
    frozen = [node for node in nodes(spec) if not node.layer.get("trainable", True)]
    return [*buffers_of(spec), *(name for node in frozen for name in node.weights)]


def weights_of(spec: Spec, *, seed: int = 1) -> dict[str, Array]:
    """Kernels that keep unit variance from layer to layer, and biases that are not 0."""
    random = np.random.default_rng(seed + 100)
    weights: dict[str, Array] = {}
    for node in nodes(spec):
        for name, shape in node.weights.items():
            scale = 1 / np.sqrt(math.prod(shape[:-1])) if len(shape) > 1 else 0.5
            values = node.initial(name) + random.normal(size=shape) * scale
            if name.endswith(".running_var"):
                values = 0.1 + np.abs(values)
            weights[name] = values.astype(np.float32)
    return weights


def several_for(spec: Spec, rows: int, *, seed: int = 1) -> dict[str, Array]:
    """Of each input normal values, or whole numbers that the embeddings which read it have."""
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name, shape in inputs_of(spec).items():
        sizes = [
            node.layer["vocabulary"]
            for node in nodes(spec)
            if node.layer["type"] == "embedding" and name in node.inputs
        ]
        values = (
            random.integers(0, min(sizes), (rows, *shape)) if sizes else random.normal(size=(rows, *shape))
        )
        found[name] = values.astype(np.float32)
    return found


def images_for(spec: Spec, rows: int, *, labels: str = "index", seed: int = 1) -> tuple[Array, Array]:
    """Normal images, and targets that the spec's loss can take."""
    shape = spec["model"]["input"]
    output = nodes(spec)[-1].output
    loss = spec["loss"] if isinstance(spec["loss"], str) else spec["loss"]["type"]
    x, y = data_for(rows, math.prod(shape), math.prod(output), loss, labels=labels, seed=seed)
    x, y = x.reshape(rows, *shape), y if y.ndim == 1 else y.reshape(rows, *output)
    return numbers_for(spec, rows, seed=seed) if reads_numbers(spec) else x, y


def reads_numbers(spec: Spec) -> bool:
    """Whether an embedding looks up what the model reads."""
    return any(layer["type"] == "embedding" for layer in spec["model"]["layers"])


def numbers_for(spec: Spec, rows: int, *, seed: int = 1) -> Array:
    """Whole numbers that its embeddings have, as floats."""
    most = min(layer["vocabulary"] for layer in spec["model"]["layers"] if layer["type"] == "embedding")
    random = np.random.default_rng(seed)
    return random.integers(0, most, (rows, *spec["model"]["input"])).astype(np.float32)
