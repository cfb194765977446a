"""The workloads of workloads.json, their variants for the growth of cost, and the same data and weights as workloads.js makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Workload = dict[str, Any]
_FILE = Path(__file__).with_name("workloads.json")


def listed() -> list[Workload]:
    """The workloads of workloads.json, in their order."""
    return json.loads(_FILE.read_text())


def workloads() -> dict[str, Workload]:
    """All by name: the listed ones, each with ten times the data as `<name>-x10` (a full batch stays one), those of `growth`."""
    ten = [
        {
            **w,
            "name": f"{w['name']}-x10",
            "rows": w["rows"] * 10,
            "batch": w["batch"] * (10 if w["batch"] == w["rows"] else 1),
        }
        for w in listed()
    ]
    sizes = [workload for sweep in growth().values() for _, workload in sweep]
    return {w["name"]: w for w in [*listed(), *ten, *sizes]}


def growth() -> dict[str, list[tuple[int, Workload]]]:
    """One size at a time of a net 64-256-256-10 with batches of 128: by the size's name, its values and workloads."""
    sizes = {"batch": 128, "width": 256, "depth": 2}
    sweeps = {"batch": (32, 128, 512, 2048), "width": (64, 256, 1024, 2048), "depth": (1, 2, 4, 8, 16)}
    return {
        axis: [(value, _dense_net(f"{axis}-{value}", **{**sizes, axis: value})) for value in values]
        for axis, values in sweeps.items()
    }


def _dense_net(name: str, *, batch: int, width: int, depth: int) -> Workload:
    return {
        "name": name,
        "rows": batch,
        "batch": batch,
        "input": [64],
        "hidden": [{"type": "dense", "units": width, "activation": "relu"}] * depth,
        "outputs": 10,
        "loss": "softmax_cross_entropy",
        "optimizer": {"type": "sgd", "lr": 0.01},
    }


def layers_of(workload: Workload) -> list[dict[str, Any]]:
    """All layers, the last one included."""
    return [*workload["hidden"], {"type": "dense", "units": workload["outputs"], "activation": "linear"}]


def data_of(workload: Workload) -> tuple[NDArray[np.float32], NDArray[np.float32] | NDArray[np.int32]]:
    """Inputs [rows, *input] and targets: values [rows, outputs] for bce, class numbers [rows] otherwise."""
    import numpy as np

    rows, outputs = workload["rows"], workload["outputs"]
    inputs = int(np.prod(workload["input"]))
    numbers = _uniform(12345, rows * inputs + inputs * outputs).astype(np.float32)
    x = numbers[: rows * inputs].reshape(rows, inputs)
    linear = numbers[rows * inputs :].reshape(inputs, outputs)
    sums = np.zeros((rows, outputs))
    for i in range(min(inputs, 64)):  # in the order of workloads.js: the same roundings
        sums += x[:, i, None].astype(np.float64) * linear[i].astype(np.float64)
    y = (sums > 0).astype(np.float32) if workload["loss"] == "bce" else sums.argmax(1).astype(np.int32)
    return x.reshape(rows, *workload["input"]), y


def weights_of(workload: Workload) -> list[NDArray[np.float32]]:
    """Initial kernels (he_uniform; biases are 0): dense [in, out], convolutions [height, width, in, out]."""
    import numpy as np

    kernels: list[NDArray[np.float32]] = []
    shape = list(workload["input"])
    for layer in layers_of(workload):
        if layer["type"] == "dense":
            kernel = [shape[0], layer["units"]]
            shape = [layer["units"]]
        elif layer["type"] == "conv2d":
            size = layer["kernel"]
            kernel = [size, size, shape[2], layer["filters"]]
            shape = [shape[0] - size + 1, shape[1] - size + 1, layer["filters"]]
        elif layer["type"] == "max_pool2d":
            shape = [shape[0] // layer["size"], shape[1] // layer["size"], shape[2]]
            continue
        else:
            shape = [int(np.prod(shape))]
            continue
        fan_in = int(np.prod(kernel[:-1]))
        numbers = _uniform(54321 + len(kernels), int(np.prod(kernel)))
        kernels.append((numbers * 2 * np.sqrt(6 / fan_in)).astype(np.float32).reshape(kernel))
    return kernels


def _uniform(seed: int, count: int) -> NDArray[np.float64]:
    """The next `count` numbers of the generator in workloads.js, all at once: state n is a^n s + c (1 + a + ... + a^(n-1))."""
    import numpy as np

    powers = np.cumprod(np.full(count, 1664525, np.uint32), dtype=np.uint32)
    sums = np.cumsum(np.concatenate([np.ones(1, np.uint32), powers[:-1]]), dtype=np.uint32)
    states = powers * np.uint32(seed) + np.uint32(1013904223) * sums
    return states / 2.0**32 - 0.5
