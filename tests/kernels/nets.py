"""A net's loss and outputs in float64 NumPy, from the spec that the engine trains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .cnns import nodes
from .curves import VALUES
from .layer_models import MODELS
from .oracle import Floats
from .specs import Array, Spec

Inputs = Array | Mapping[str, Array]
"""Of a net of several inputs by name."""


def trace(
    spec: Spec, weights: Mapping[str, Array], x: Inputs, *, training: bool = False
) -> Iterator[tuple[dict[str, Any], Floats, Floats]]:
    """Each layer with its first input and, before its activation, its output; in evaluation, or in a training step."""
    given = x if isinstance(x, Mapping) else {"input": x}
    made: dict[str, Floats] = {name: values.astype(np.float64) for name, values in given.items()}
    for node in nodes(spec):
        inputs = [made[name] for name in node.inputs]
        parts = {name.rpartition(".")[2]: weights[name].astype(np.float64) for name in node.weights}
        model = MODELS[node.layer["type"]]
        z = ((training and model.trained) or model.numpy)(node.layer, parts, inputs)
        made[node.name] = VALUES[node.layer.get("activation", "linear")](z)
        yield node.layer, inputs[0], z


def forward(spec: Spec, weights: Mapping[str, Array], x: Inputs, *, training: bool = False) -> Floats:
    """The last layer's outputs [rows, units]."""
    layer, _, z = list(trace(spec, weights, x, training=training))[-1]
    return VALUES[layer.get("activation", "linear")](z)


def row_losses(loss: str | Mapping[str, Any], z: Floats, y: Array) -> Floats:
    """The loss of each row from outputs; class numbers or a value for each output."""
    options: Mapping[str, Any] = {"type": loss} if isinstance(loss, str) else loss
    kind, smoothing = options["type"], options.get("label_smoothing", 0.0)
    z = z.reshape(len(z), -1)
    if kind == "softmax_cross_entropy":
        given = np.eye(z.shape[1])[y.astype(int)] if y.ndim == 1 else y
        target = (1 - smoothing) * given + smoothing / z.shape[1]
        target = target * np.asarray(options.get("class_weights") or 1.0)
        below = z - z.max(axis=1, keepdims=True)
        return (target * (np.log(np.exp(below).sum(axis=1, keepdims=True)) - below)).sum(axis=1)
    target = y.reshape(z.shape)
    d = z - target
    match kind:
        case "mse":
            parts = d**2
        case "mae":
            parts = np.abs(d)
        case "huber":
            delta = options.get("delta", 1.0)
            parts = np.where(np.abs(d) <= delta, d**2 / 2, delta * (np.abs(d) - delta / 2))
        case "hinge":
            parts = np.maximum(0, 1 - np.where(target > 0.5, 1, -1) * z)
        case _:
            yes = ((1 - smoothing) * target + smoothing / 2) * np.asarray(options.get("pos_weight") or 1.0)
            no = (1 - smoothing) * (1 - target) + smoothing / 2
            small = np.log1p(np.exp(-np.abs(z)))
            parts = yes * (np.maximum(-z, 0) + small) + no * (np.maximum(z, 0) + small)
    return parts.mean(axis=1)


def accuracy(loss: str, z: Floats, y: Array) -> float:
    """The share predicted right."""
    if loss == "bce":
        return float(((z > 0) == (y.reshape(z.shape) > 0.5)).mean())
    return float((z.argmax(axis=1) == (y if y.ndim == 1 else y.argmax(axis=1))).mean())


def metrics(spec: Spec, weights: Mapping[str, Array], x: Inputs, y: Array) -> dict[str, Any]:
    """What `session.evaluate` gives."""
    z = forward(spec, weights, x)
    result = {"loss": float(row_losses(spec["loss"], z, y).mean())}
    if spec.get("metrics"):
        result["accuracy"] = accuracy(spec["loss"], z, y)
    return result
