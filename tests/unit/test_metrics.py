"""Curves from bytes, their joining, and thinning that keeps every spike."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelgrad.jsonable import jsonable, to_float
from texelgrad.metrics import Curve, Piece, assemble, downsample


def piece(
    steps: list[int], values: list[list[float]], keys: tuple[str, ...], cut: int | None = None
) -> Piece:
    """A piece of these points."""
    return Piece(keys, np.array(steps, "<u4").tobytes(), np.array(values, "<f8").tobytes(), cut)


def test_pieces_join_by_key():
    """Keys may differ from piece to piece; points after a cut don't count."""
    curves = assemble(
        [
            piece([1, 2, 3], [[0.1], [0.2], [0.3]], ("loss",), cut=2),
            piece([3], [[0.5, 0.75]], ("loss", "val_loss")),
            piece([9], [[1.0]], ("gone",), cut=2),
        ]
    )
    assert set(curves) == {"loss", "val_loss"}
    assert curves["loss"].steps.tolist() == [1, 2, 3]
    assert curves["loss"].values.tolist() == [0.1, 0.2, 0.5]
    assert curves["val_loss"].values.tolist() == [0.75]


@given(
    st.integers(0, 2**32 - 1),
    st.integers(61, 400),
    st.lists(st.tuples(st.integers(0, 399), st.sampled_from([math.nan, math.inf, -math.inf, 9.0, -9.0]))),
    st.integers(8, 60),
)
def test_thinning_keeps_what_matters(seed: int, total: int, odd: list[tuple[int, float]], max_points: int):
    """Own points only, in order, not too many; first, last, smallest and largest are kept, and a NaN if there is one."""
    values = np.random.default_rng(seed).random(total)
    for place, value in odd:
        values[place % total] = value
    curve = Curve(np.arange(1, total + 1, dtype=np.uint32), values)
    thin = downsample(curve, max_points)
    assert len(thin.steps) <= max_points
    assert (np.diff(thin.steps.astype(np.int64)) > 0).all()
    assert thin.values.tobytes() == curve.values[thin.steps - 1].tobytes()
    assert thin.steps[0] == 1
    assert thin.steps[-1] == total
    assert np.isnan(thin.values).any() == np.isnan(curve.values).any()
    numbers = curve.values[~np.isnan(curve.values)]
    if numbers.size:
        assert np.nanmin(thin.values) == numbers.min()
        assert np.nanmax(thin.values) == numbers.max()


def test_a_short_curve_stays_as_it_is():
    """Nothing is thinned that fits."""
    curve = Curve(np.array([1, 5], np.uint32), np.array([math.nan, 2.0]))
    assert downsample(curve, 8) is curve


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_json_keeps_every_number(value: float):
    """Through JSON and back, bit for bit, except that all NaNs are one."""
    back = to_float(json.loads(json.dumps(jsonable({"a": [value]}), allow_nan=False))["a"][0])
    assert (
        math.isnan(back) if math.isnan(value) else np.float64(back).tobytes() == np.float64(value).tobytes()
    )


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
def test_names_of_non_finite_numbers(value: float, text: str):
    """As JSON Schema and JavaScript users know them."""
    assert jsonable(value) == text
