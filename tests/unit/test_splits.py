"""Splits: Python and the page take the same rows, which are what the rule says; wrong ones are refused alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from texelgrad.errors import Invalid
from texelgrad.shapes import ArrayInfo, Stats, data_faults
from texelgrad.spec import parse_spec
from texelgrad.spec_data import Validation
from texelgrad.splits import classes_of, split

from ..node import call

PROBE = "/tests/unit/data_probe.js"
Spec = dict[str, Any]


def spec_for(validation: Spec, loss: str = "softmax_cross_entropy", units: int = 3, seed: int = 7) -> Spec:
    """A net of 2 inputs, as the page gets it: with all defaults filled in."""
    raw = {
        "model": {"input": [2], "layers": [{"type": "dense", "units": units}]},
        "loss": loss,
        "optimizer": {"type": "sgd", "lr": 0.1},
        "data": {"validation": validation},
        "train": {"epochs": 1, "seed": seed},
    }
    return parse_spec(raw).model_dump(mode="json")


def both(validation: Spec, y: Any, seed: int = 7) -> tuple[list[int], list[int]]:
    """The rows that train and that validate, which both sides take in the same order."""
    spec = spec_for(validation, seed=seed)
    theirs = call(PROBE, "splitOf", spec, y, "index" if y.ndim == 1 else "values", 3)
    ours = split(Validation(**validation), seed, len(y), classes_of(y))
    assert [theirs["train"].tolist(), theirs["validation"].tolist()] == [rows.tolist() for rows in ours]
    return ours[0].tolist(), ours[1].tolist()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rows=st.integers(2, 300),
    fraction=st.floats(0, 0.99),
    seed=st.integers(0, 2**53 - 1),
    stratify=st.booleans(),
    skew=st.floats(0.01, 5),
)
def test_fractions(rows: int, fraction: float, seed: int, stratify: bool, skew: float):
    """floor(rows * fraction) validate, each row is taken once, and each class gives its share, rounded down or up."""
    y = (3 * np.random.default_rng(rows).random(rows) ** skew).astype(np.int32)
    assume(fraction == 0 or rows * fraction >= 1)
    stratify = stratify and fraction > 0
    train, kept = both({"fraction": fraction, "stratify": stratify}, y, seed)
    assert len(kept) == int(rows * fraction)
    assert sorted(train + kept) == list(range(rows))
    for number in range(3 if stratify else 0):
        share = np.count_nonzero(y == number) * len(kept) / rows
        assert abs(np.count_nonzero(y[kept] == number) - share) < 1


def test_stratified_splits_are_random_within_a_class():
    """Which rows of a class validate depends on the seed, and they are not the data set's first or last."""
    y = np.repeat(np.arange(3, dtype=np.int32), 100)
    chosen = {tuple(sorted(both({"fraction": 0.3, "stratify": True}, y, seed)[1])) for seed in range(5)}
    assert len(chosen) == 5
    first = np.array(both({"fraction": 0.3, "stratify": True}, y, 0)[1])
    within = first % 100
    assert 35 < within.mean() < 65


def test_classes_of_probabilities():
    """The first largest of a row."""
    y = np.array([[0.2, 0.4, 0.4], [1, 0, 0], [0, 0, 1], [0, 1, 0]] * 6, np.float32)
    assert classes_of(y)[:4].tolist() == [1, 0, 2, 1]
    _, kept = both({"fraction": 0.5, "stratify": True}, y)
    assert np.bincount(classes_of(y)[kept]).tolist() == [3, 6, 3]


@pytest.mark.parametrize(
    ("named", "expected"),
    [([3], [3]), ([[2, 5]], [2, 3, 4]), ([9, [0, 2], 4], [0, 1, 4, 9]), ([[0, 9]], list(range(9)))],
)
def test_named_rows(named: list[Any], expected: list[int]):
    """Indices and ranges, whatever their order; both parts keep the data set's."""
    train, kept = both({"rows": named}, np.zeros(10, np.int32))
    assert kept == expected
    assert train == [row for row in range(10) if row not in expected]


def info(*shape: int, integral: bool = True) -> ArrayInfo:
    return ArrayInfo("float32", shape, Stats(min=0, max=1, integral=integral, row_sums_one=False))


@pytest.mark.parametrize(
    ("validation", "field", "legal"),
    [
        ({"rows": [10]}, "data.validation.rows.0", "0 to 9"),
        ({"rows": [0, [4, 12]]}, "data.validation.rows.1", "0 to 9"),
        ({"rows": [[0, 10]]}, "data.validation.rows", "at most 9 rows"),
    ],
)
def test_rows_that_the_data_lacks(validation: Spec, field: str, legal: str):
    """Refused before the job is queued, and in a page."""
    y = np.zeros(10, np.int32)
    theirs = call(PROBE, "splitOf", spec_for(validation), y, "index", 3)["error"]
    assert (theirs["code"], theirs["field"]) == ("data_invalid", field)
    (fault,) = data_faults(dict(parse_spec(spec_for(validation))), {"x": info(10, 2), "y": info(10)})
    assert (fault.field, fault.legal) == (field, legal)


@pytest.mark.parametrize(
    ("rows", "fraction", "legal"),
    [(10, 0.05, "0, or at least 0.1"), (3, 0.25, "0, or at least 0.333334"), (49, 0.02, "0, or at least 0.020409"), (1, 0.5, "0")],
)  # fmt: skip
def test_fractions_that_keep_no_row(rows: int, fraction: float, legal: str):
    """Refused alike, with the least that keeps one; at that, one is kept."""
    spec = spec_for({"fraction": fraction})
    theirs = call(PROBE, "splitOf", spec, np.zeros(rows, np.int32), "index", 3)["error"]
    (fault,) = data_faults(dict(parse_spec(spec)), {"x": info(rows, 2), "y": info(rows)})
    assert (theirs["code"], theirs["field"]) == ("data_invalid", fault.field)
    assert theirs["message"] == f"{fault.field}: {fault.message}; legal: {fault.legal}"
    assert fault.legal == legal
    if rows > 1:
        assert len(both({"fraction": float(legal.rsplit(maxsplit=1)[-1])}, np.zeros(rows, np.int32))[1]) == 1


@pytest.mark.parametrize(
    ("y", "y_info"),
    [
        (np.zeros((10, 2), np.float32), info(10, 2)),
        (np.full(10, 0.5, np.float32), info(10, integral=False)),
    ],
)
def test_targets_without_classes(y: Any, y_info: ArrayInfo):
    """bce has a class a row only where its one target is 0 or 1."""
    spec = spec_for({"fraction": 0.5, "stratify": True}, "bce", 2 if y.ndim == 2 else 1)
    theirs = call(PROBE, "splitOf", spec, y, "values", 2)["error"]
    (fault,) = data_faults(dict(parse_spec(spec)), {"x": info(10, 2), "y": y_info})
    assert theirs["field"] == fault.field == "data.validation.stratify"
    assert fault.legal == "false, or a column y of 0 and 1"


def test_stratified_without_the_classes():
    with pytest.raises(ValueError, match="class of each row"):
        split(Validation(fraction=0.5, stratify=True), 0, 10)


def test_ranges_of_a_large_list_are_checked_fast():
    """Each row once, also where there are many ranges."""
    named = [[2 * i, 2 * i + 1] for i in range(50_000)]
    assert parse_spec(spec_for({"rows": named})).data.validation.rows == named
    with pytest.raises(Invalid) as caught:
        spec_for({"rows": [*named, 10]})
    assert [fault.field for fault in caught.value.faults] == ["data.validation.rows.50000"]
