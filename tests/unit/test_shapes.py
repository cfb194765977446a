"""Estimates, and what does not fit between data and spec."""

from __future__ import annotations

from typing import Any

import pytest

from texelgrad.config import Settings
from texelgrad.shapes import ArrayInfo, Stats, data_faults, estimate, limit_faults
from texelgrad.spec import JobSpec, parse_spec
from texelgrad.spec_data import Validation
from texelgrad.splits import split_rows

from ..node import NodeError, call

PLAIN = Stats(min=0, max=1, integral=False, row_sums_one=False)


def spec(loss: str = "mse", units: int = 3, **changes: Any) -> JobSpec:
    """64 -> 32 -> units."""
    raw: dict[str, Any] = {
        "model": {
            "input": [64],
            "layers": [{"type": "dense", "units": 32}, {"type": "dense", "units": units}],
        },
        "loss": loss,
        "optimizer": {"type": "adam"},
        "train": {"epochs": 2, "batch_size": 10},
    }
    return parse_spec({**raw, **changes})


def info(*shape: int, stats: Stats = PLAIN, dtype: str = "float32") -> ArrayInfo:
    """An array of this shape."""
    return ArrayInfo(dtype, shape, stats)


def labels(low: float, high: float, rows: int = 100) -> ArrayInfo:
    """A column of class numbers."""
    return info(rows, stats=Stats(low, high, integral=True, row_sums_one=False), dtype="int32")


def test_estimate_counts_by_hand():
    """Parameters (64 + 1) 32 + (32 + 1) 3; 10 rows a step, 9 steps an epoch of 85 rows."""
    made = estimate(spec(data={"validation": {"fraction": 0.15}}), {"x": info(100, 64), "y": info(100, 3)})
    assert made.parameters == 2179
    assert (made.train_rows, made.validation_rows) == (85, 15)
    assert (made.steps_per_epoch, made.total_steps) == (9, 18)
    # Forward and dW of both layers, dX of the second: 2 * 10 * (2 * 2080 + 3 * 99).
    assert made.flops_per_step == 89_140
    assert made.output_shape == [3]


def test_estimate_without_data():
    """The model's size is known; the rest is not."""
    made = estimate(spec(), None)
    assert made.parameters == 2179
    assert made.total_steps is made.texture_bytes is None


def test_steps_instead_of_epochs():
    """They are the total."""
    assert estimate(spec(train={"steps": 7}), {"x": info(100, 64), "y": info(100, 3)}).total_steps == 7


@pytest.mark.parametrize(
    ("rows", "fraction", "expected"),
    [(1797, 0.2, (1438, 359)), (10, 0, (10, 0)), (1, 0.99, (1, 0)), (3, 0.5, (2, 1))],
)
def test_split(rows: int, fraction: float, expected: tuple[int, int]):
    """floor(rows * fraction) validate."""
    assert split_rows(rows, Validation(fraction=fraction)) == expected


def probabilities(units: int, row_sums_one: bool = True, low: float = 0) -> ArrayInfo:
    """Rows of `units` numbers."""
    return info(100, units, stats=Stats(low, 1, integral=False, row_sums_one=row_sums_one))


@pytest.mark.parametrize(
    ("loss", "units", "y", "field"),
    [
        ("softmax_cross_entropy", 3, labels(0, 2), None),
        ("softmax_cross_entropy", 3, labels(0, 3), "model.layers.1.units"),
        ("softmax_cross_entropy", 3, labels(-1, 2), "data"),
        ("softmax_cross_entropy", 3, info(100), "data"),
        ("softmax_cross_entropy", 3, probabilities(3), None),
        ("softmax_cross_entropy", 3, probabilities(4), "model.layers.1.units"),
        ("softmax_cross_entropy", 3, probabilities(3, row_sums_one=False), "data"),
        ("softmax_cross_entropy", 3, probabilities(3, low=-0.5), "data"),
        ("bce", 1, labels(0, 1), None),
        ("bce", 1, info(100), None),
        ("bce", 1, labels(0, 2), "data"),
        ("bce", 1, labels(-1, 1), "data"),
        ("bce", 2, labels(0, 1), "model.layers.1.units"),
        ("bce", 2, info(100, 2), None),
        ("mse", 1, labels(-5, 5), None),
        ("mse", 3, info(100, 3), None),
        ("mse", 3, info(100), "model.layers.1.units"),
        ("mse", 3, info(100, 2), "model.layers.1.units"),
    ],
)
def test_targets(loss: str, units: int, y: ArrayInfo, field: str | None):
    """Labels against the last layer's units, for each loss."""
    found = [fault.field for fault in data_faults(dict(spec(loss, units)), {"x": info(100, 64), "y": y})]
    assert found == ([field] if field else [])


def test_several_faults_with_the_data():
    """Input, targets and batch in one answer, each with what would be legal."""
    faults = list(data_faults(dict(spec()), {"x": info(8, 8, 8), "y": info(8, 2)}))
    assert [(fault.field, fault.legal) for fault in faults] == [
        ("model.input", "[8, 8]"),
        ("model.layers.1.units", "2"),
        ("train.batch_size", "1 to 8, or null for all of them"),
    ]


@pytest.mark.parametrize("rows", [1, 3, 49, 100, 1797, 999_999])
def test_a_share_that_keeps_no_row(rows: int):
    """Refused; what is said to be legal is."""
    wanted = spec(data={"validation": {"fraction": 0.5 / rows}})
    found = list(data_faults(dict(wanted), {"x": info(rows, 64), "y": info(rows, 3)}))
    fault = next(fault for fault in found if fault.field == "data.validation.fraction")
    if rows > 1:
        least = float((fault.legal or "").rpartition(" ")[2])
        assert split_rows(rows, Validation(fraction=least))[1] >= 1
        assert least < 1.1 / rows + 1e-6


def test_too_many_steps():
    """The step counter has 31 bits."""
    wanted = dict(spec(train={"epochs": 2**31 - 1, "batch_size": 10}))
    (fault,) = data_faults(wanted, {"x": info(100, 64), "y": info(100, 3)})
    assert (fault.field, fault.legal) == ("train.epochs", f"at most {(2**31 - 1) // 10}")


def test_data_that_no_page_holds():
    """Refused with the figures before the job is queued; the engine refuses the same."""
    small, large = info(2**20, 1000), info(2**20, 1100)
    wanted = parse_spec(
        {**spec().model_dump(), "model": {"input": [1100], "layers": [{"type": "dense", "units": 3}]}}
    )
    (fault,) = data_faults(dict(wanted), {"x": large, "y": info(2**20, 3)})
    assert (fault.field, fault.value) == ("data", 4 * 2**20 * 1103)
    assert fault.legal == "at most 4294967296"
    assert "data" not in [
        fault.field for fault in data_faults(dict(wanted), {"x": small, "y": info(2**20, 3)})
    ]
    shapes = {"x": {"shape": [2**20, 1100]}, "y": {"shape": [2**20, 3]}}
    with pytest.raises(NodeError, match=f"{4 * 2**20 * 1103} bytes"):
        call("/browser_runtime/train/estimate.js", "estimate", wanted.model_dump(mode="json"), shapes)


def test_limits_of_the_service():
    """Layers, parameters and time that the settings don't allow."""
    settings = Settings(max_layers=1, max_parameters=2178, max_wall_s=10)
    found = [fault.field for fault in limit_faults(dict(spec(limits={"wall_s": 11})), settings)]
    assert found == ["model.layers", "model.layers", "limits.wall_s"]
    assert not list(limit_faults(dict(spec(limits={"wall_s": 11})), Settings()))
