"""A Keras model while it is made: its layers and weights, and the files that TensorFlow.js reads them from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texelgrad.errors import Fault, Invalid
from texelgrad.inputs import Shape, array_of
from texelgrad.normalize import tensors_of
from texelgrad.tensor_file import Tensors, pieces_of

_SHARD_BYTES = 4 << 20  # what browsers cache well
Made = tuple[str, dict[str, Any], dict[str, NDArray[Any]]]
"""A Keras class, its config, and its weights."""


class Model:
    """Keras layers and their weights so far."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.layers: list[dict[str, Any]] = []
        self.weights: list[tuple[str, NDArray[Any]]] = []

    def add(self, name: str, made: Made, inputs: list[str]) -> str:
        """Append a layer that reads others; answers its name."""
        kind, config, weights = made
        nodes = [[[each, 0, 0, {}] for each in inputs]] if inputs else []
        named = {"name": name, **config}
        self.layers.append({"class_name": kind, "name": name, "config": named, "inbound_nodes": nodes})
        self.weights += [(f"{name}/{part}", values) for part, values in weights.items()]
        return name

    def parameters(self, name: str) -> dict[str, NDArray[Any]]:
        """Kernel, and bias where there is one, of a layer."""
        found = {part: self.tensors.get(f"{name}.{part}") for part in ("kernel", "bias")}
        return {part: tensor for part, tensor in found.items() if tensor is not None}


def add_input(model: Model, name: str, shape: Shape) -> str:
    """An input as layers take it, in float32: where it is normalised, a batch normalisation whose moments are given."""
    config = {"batch_input_shape": [None, *shape], "dtype": "float32", "sparse": False}
    entry = model.add(array_of(name), ("InputLayer", config, {}), [])
    names = tensors_of(name)
    if names[0] not in model.tensors:
        return entry
    offset, scale = (model.tensors[each] for each in names)
    for each in names:
        if (most := np.abs(model.tensors[each]).max()) > np.finfo(np.float32).max:
            message = f"can't be made: {each} has {most:.2g}, beyond the float32 of TensorFlow.js"
            raise Invalid([Fault("format", message, "tfjs", "safetensors, npz or onnx")])
    weights = {"gamma": scale, "moving_mean": offset, "moving_variance": np.ones_like(scale)}
    config = {"axis": -1, "epsilon": 0, "center": False, "scale": True}
    made: Made = ("BatchNormalization", config, weights)
    return model.add(f"{name}.normalization", made, [entry])  # the dot is in no layer's name


def files(config: dict[str, Any], weights: list[tuple[str, NDArray[Any]]]) -> Iterator[tuple[str, bytes]]:
    """model.json, and the weights one after another cut into shards."""
    size = sum(4 * values.size for _, values in weights)
    count = max(1, -(-size // _SHARD_BYTES))
    shards = [f"group1-shard{number + 1}of{count}.bin" for number in range(count)]
    manifest = [{"name": name, "shape": list(values.shape), "dtype": "float32"} for name, values in weights]
    document = {
        "format": "layers-model",
        "generatedBy": "texelgrad",
        "convertedBy": None,
        "modelTopology": {
            "keras_version": "tfjs-layers 4.22.0",
            "backend": "tensor_flow.js",
            "model_config": {"class_name": "Model", "config": config},
        },
        "weightsManifest": [{"paths": list(shards), "weights": manifest}],
    }
    yield "model.json", json.dumps(document, sort_keys=True).encode()
    names = iter(shards)
    data = bytearray()
    for piece in chain.from_iterable(pieces_of(values, "<f4") for _, values in weights):
        data += piece
        while len(data) > _SHARD_BYTES:
            yield next(names), bytes(data[:_SHARD_BYTES])
            del data[:_SHARD_BYTES]
    yield next(names), bytes(data)
