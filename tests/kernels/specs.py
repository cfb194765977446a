"""Job specs, data and weights of small nets for the engine's tests."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Spec = dict[str, Any]

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"type": "sgd", "lr": 0.05},
    "momentum": {"type": "sgd", "lr": 0.02, "momentum": 0.9},
    "adam": {"type": "adam", "lr": 0.01},
}
LOSSES = ("bce", "mse", "softmax_cross_entropy")
ACTIVATIONS = ("linear", "relu", "sigmoid", "tanh")


def mlp(
    sizes: tuple[int, ...],
    loss: str = "mse",
    *,
    activation: str = "relu",
    last: str = "linear",
    optimizer: str | dict[str, Any] = "sgd",
    steps: int = 10,
    seed: int = 1,
    **train: Any,
) -> Spec:
    """A spec of dense layers from sizes[0] inputs to sizes[-1] outputs."""
    functions = [activation] * (len(sizes) - 2) + [last]
    return {
        "model": {
            "input": [sizes[0]],
            "layers": [
                {"type": "dense", "units": units, "activation": function}
                for units, function in zip(sizes[1:], functions, strict=True)
            ],
        },
        "loss": loss,
        "metrics": [] if loss == "mse" else ["accuracy"],
        "optimizer": OPTIMIZERS[optimizer] if isinstance(optimizer, str) else optimizer,
        "train": {"seed": seed, **({} if "epochs" in train else {"steps": steps}), **train},
    }


def data_for(
    rows: int, inputs: int, outputs: int, loss: str, *, labels: str = "index", seed: int = 1
) -> tuple[Array, Array]:
    """Normal inputs, and targets that the loss can take."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, inputs)).astype(np.float32)
    if loss in ("mse", "mae", "huber"):
        return x, random.normal(size=(rows, outputs)).astype(np.float32)
    if loss in ("bce", "hinge"):
        return x, random.integers(0, 2, (rows, outputs)).astype(np.float32)
    if labels == "index":
        return x, random.integers(0, outputs, rows).astype(np.int32)
    shares = random.random((rows, outputs))
    return x, (shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)


def weights_for(sizes: tuple[int, ...], *, seed: int = 1) -> dict[str, Array]:
    """Weights of `mlp` with unit variance kept from layer to layer, and biases that are not 0."""
    random = np.random.default_rng(seed + 100)
    weights: dict[str, Array] = {}
    for number, (inputs, units) in enumerate(pairwise(sizes), 1):
        kernel = random.normal(size=(inputs, units)) / np.sqrt(inputs)
        weights[f"dense_{number}.kernel"] = kernel.astype(np.float32)
        weights[f"dense_{number}.bias"] = (0.5 * random.normal(size=units)).astype(np.float32)
    return weights
