"""The service's bound of the texture memory against what the engine's planner really allocates."""

from __future__ import annotations

from typing import Any

import pytest

from texelgrad.shapes import ArrayInfo, Stats, estimate
from texelgrad.spec import parse_spec

from tests.node import call

SGD, MOMENTUM, ADAM = (
    {"type": "sgd", "lr": 0.1},
    {"type": "sgd", "lr": 0.1, "momentum": 0.9},
    {"type": "adam"},
)


@pytest.mark.parametrize(
    ("widths", "rows", "batch", "loss", "optimizer", "fraction", "columns"),
    [
        ([2, 32, 1], 100, None, "bce", SGD, 0, None),
        ([2, 256, 256, 1], 500, None, "bce", SGD, 0, None),
        ([64, 64, 10], 1797, 128, "softmax_cross_entropy", ADAM, 0.2, None),
        ([64, 64, 10], 1797, 32, "softmax_cross_entropy", MOMENTUM, 0.2, None),
        ([64, 64, 10], 1797, 128, "softmax_cross_entropy", ADAM, 0.2, 10),
        ([784, 512, 512, 10], 60_000, 128, "softmax_cross_entropy", ADAM, 0, None),
        ([1024, 2048, 2048, 1000], 2000, 256, "softmax_cross_entropy", SGD, 0, None),
        ([64, 257], 512, 64, "softmax_cross_entropy", ADAM, 0.2, None),
        ([1, 1000], 3000, None, "mse", SGD, 0.5, 1000),  # row losses of 250 texels a row
        ([1, 1], 1, None, "mse", SGD, 0, None),
        ([1, 1], 100_000, None, "mse", SGD, 0, None),
        ([3, 5, 7, 2], 17, 4, "mse", MOMENTUM, 0.3, 2),
        ([1000, 1], 10, None, "mse", ADAM, 0, None),
        ([300, 7], 257, 1, "bce", ADAM, 0.5, 7),
        ([10, 2000, 2], 200, 16, "softmax_cross_entropy", ADAM, 0.2, None),
        ([30, 16, 16, 16, 16, 16, 1], 569, 64, "bce", ADAM, 0.25, None),
    ],
)
def test_the_estimate_is_a_bound_within_twice_the_plan(
    widths: list[int],
    rows: int,
    batch: int | None,
    loss: str,
    optimizer: dict[str, Any],
    fraction: float,
    columns: int | None,
):
    """Never below what the engine takes, never above twice of it; parameters and steps are equal."""
    layers: list[dict[str, Any]] = [
        {"type": "dense", "units": width, "activation": "relu"} for width in widths[1:]
    ]
    layers[-1]["activation"] = "linear"
    spec = parse_spec(
        {
            "model": {"input": widths[:1], "layers": layers},
            "loss": loss,
            "metrics": [] if loss == "mse" else ["accuracy"],
            "optimizer": optimizer,
            "data": {"validation": {"fraction": fraction}},
            "train": {"epochs": 3, "batch_size": batch},
        }
    )
    stats = Stats(0, 1, integral=True, row_sums_one=True)
    shapes = {"x": (rows, widths[0]), "y": (rows,) if columns is None else (rows, columns)}
    made = estimate(spec, *(ArrayInfo("float32", shape, stats) for shape in shapes.values()))
    exact = call(
        "/browser_runtime/train/estimate.js",
        "estimate",
        spec.model_dump(),
        {name: {"shape": list(shape)} for name, shape in shapes.items()},
    )
    assert made.parameters == exact["parameters"]
    assert made.total_steps == exact["totalSteps"]
    assert made.texture_bytes is not None
    assert exact["textureBytes"] <= made.texture_bytes <= 2 * exact["textureBytes"]
