"""Normalisation: fitted in the engine on the rows that train and no others, applied alike by the engine and by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelgrad.normalize import normalized

from ..node import call
from ..tolerances import FLOAT32_ROUNDING, MERGED_RTOL, NORMALIZED_TOL, REFERENCE_RTOL

PROBE = "/tests/unit/data_probe.js"
X = np.random.default_rng(3).normal(5, [1, 10, 100], (50, 3)).astype(np.float32)


def fitted(kind: str, x: Any, train: Any) -> dict[str, Any]:
    """Offset, scale, and all rows after them; or the error."""
    found = call(PROBE, "fitted", kind, x, np.asarray(train, np.int32))
    if "error" not in found:
        weights = {f"input.{name}": np.array(found[name]) for name in ("offset", "scale")}
        assert found["kind"] == kind
        assert np.array_equal(found["x"].reshape(x.shape), normalized(x, weights)), "NumPy gives other bits"
    return found


def expected(kind: str, rows: Any) -> tuple[Any, Any]:
    """Offset and spread by NumPy in float64, over all axes but the last."""
    values = rows.reshape(-1, rows.shape[-1]).astype(np.float64)
    if kind == "standard":
        return values.mean(axis=0), values.std(axis=0)
    return values.min(axis=0), np.ptp(values, axis=0)


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_fitted_on_training_rows_only(kind: str):
    """Whatever stands in the others, in whatever order they train."""
    train = np.random.default_rng(1).permutation(50)[:40]
    spoiled = X.copy()
    spoiled[np.setdiff1d(np.arange(50), train)] = 1e9
    found = fitted(kind, spoiled, train)
    offset, spread = expected(kind, X[train])
    np.testing.assert_allclose(found["offset"], offset, rtol=REFERENCE_RTOL)
    np.testing.assert_allclose(found["scale"], 1 / spread, rtol=REFERENCE_RTOL)
    rows = found["x"].reshape(X.shape)[train]
    if kind == "standard":
        assert np.abs(rows.mean(axis=0)).max() < NORMALIZED_TOL
        assert np.abs(rows.std(axis=0) - 1).max() < NORMALIZED_TOL
    else:
        assert rows.min() == 0
        assert rows.max() == 1


def test_images_by_channel():
    """All pixels of a channel share one offset and scale."""
    x = np.random.default_rng(1).random((10, 4, 5, 2), np.float32)
    found = fitted("standard", x, np.arange(10))
    offset, spread = expected("standard", x)
    np.testing.assert_allclose(found["offset"], offset, rtol=REFERENCE_RTOL)
    np.testing.assert_allclose(found["scale"], 1 / spread, rtol=REFERENCE_RTOL)


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_several_windows(kind: str):
    """What is read in pieces has the moments of the whole, also far from 0: merged, not summed up as squares."""
    x = np.random.default_rng(2).normal(1000, [[0.5, 3.0]], (2_150_000, 2)).astype(np.float32)
    x[:1_000_000] += 7  # the pieces differ
    train = np.arange(100, 2_140_000)
    found = call(PROBE, "fitted", kind, x, train.astype(np.int32))
    offset, spread = expected(kind, x[train])
    np.testing.assert_allclose(found["offset"], offset, rtol=REFERENCE_RTOL)
    np.testing.assert_allclose(found["scale"], 1 / spread, rtol=MERGED_RTOL)


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_what_does_not_vary_stays_finite(kind: str):
    """A constant column, also one whose mean is not exact, is moved and not scaled."""
    x = np.full((30, 2), [0.1, 0.0], np.float32)
    found = fitted(kind, x, np.arange(30))
    assert found["scale"] == [1.0, 1.0]
    np.testing.assert_allclose(found["offset"], x[0].astype(np.float64), rtol=NORMALIZED_TOL)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=2, max_size=40),
    st.sampled_from(["standard", "minmax"]),
)
def test_any_values(values: list[float], kind: str):
    """Finite numbers stay finite, and the training rows of minmax within 0 to 1."""
    x = np.array(values, np.float32)[:, None]
    found = fitted(kind, x, np.arange(len(x)))
    assert np.isfinite(found["x"]).all()
    if kind == "minmax" and found["scale"][0] != 1:
        assert found["x"].min() == 0
        assert found["x"].max() <= 1 + 2 * FLOAT32_ROUNDING


def test_what_is_not_finite_is_refused():
    """With its row, before it spoils the mean."""
    x = X.copy()
    x[7, 1] = np.nan
    error = fitted("standard", x, np.arange(50))["error"]
    assert (error["code"], error["field"]) == ("data_invalid", "data.x")
    assert "value 22" in error["message"]


def test_weights_without_normalisation():
    """Inputs stay as they are."""
    assert normalized(X, {"dense_1.kernel": X}) is X
