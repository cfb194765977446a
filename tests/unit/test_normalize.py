"""Normalisation: fitted on the rows that train and no others, applied to any range of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelgrad.normalize import fit, read_normalized, training_rows
from texelgrad.rng import RandomStream, Stream

X = np.random.default_rng(3).normal(5, [1, 10, 100], (50, 3)).astype("<f4")


def pieces(data: bytes, size: int) -> Callable[[], Iterator[bytes]]:
    """Reads bytes in pieces."""
    return lambda: (data[at : at + size] for at in range(0, len(data), size))


def test_the_split_is_the_pages():
    """The last rows of stream 2's permutation validate; without a fraction all train."""
    order = RandomStream(7, Stream.SPLIT).permutation(50)
    trains = training_rows(7, 0.25, 50)
    assert sorted(order[:38].tolist()) == np.flatnonzero(trains).tolist()
    assert training_rows(7, 0.0, 50).all()


@pytest.mark.parametrize("size", [1, 7, 12, 4096])
@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_fitted_on_training_rows_only(kind: str, size: int):
    """Whatever stands in the others; in whatever pieces the bytes come."""
    trains = training_rows(1, 0.2, 50)
    spoiled = X.copy()
    spoiled[~trains] = 1e9
    found = fit(kind, pieces(spoiled.tobytes(), size), X.shape, trains)
    rows = X[trains].astype(np.float64)
    offset = rows.mean(axis=0) if kind == "standard" else rows.min(axis=0)
    spread = rows.std(axis=0) if kind == "standard" else np.ptp(rows, axis=0)
    np.testing.assert_allclose(found["offset"], offset, rtol=1e-12)
    np.testing.assert_allclose(found["scale"], 1 / spread, rtol=1e-12)


def test_images_by_channel():
    """All pixels of a channel share one offset and scale."""
    x = np.random.default_rng(1).random((10, 4, 5, 2), np.float32)
    found = fit("standard", pieces(x.tobytes(), 100), x.shape, np.ones(10, np.bool_))
    np.testing.assert_allclose(found["offset"], x.mean(axis=(0, 1, 2), dtype=np.float64), rtol=1e-12)
    np.testing.assert_allclose(found["scale"], 1 / x.astype(np.float64).std(axis=(0, 1, 2)), rtol=1e-12)


@pytest.mark.parametrize("kind", ["standard", "minmax"])
def test_what_does_not_vary_stays_finite(kind: str):
    """A constant column, also one whose mean is not exact, is moved and not scaled."""
    x = np.full((30, 2), [0.1, 0.0], "<f4")
    found = fit(kind, pieces(x.tobytes(), 64), x.shape, np.ones(30, np.bool_))
    assert found["scale"] == [1.0, 1.0]
    np.testing.assert_allclose(found["offset"], x[0].astype(np.float64), rtol=1e-6)


@settings(deadline=None)  # the first call pays for imports
@given(st.integers(0, 600), st.integers(0, 600), st.integers(1, 50))
def test_any_range_of_bytes(first: int, second: int, size: int):
    """Each is cut from the same normalised array, in whatever pieces what is stored comes."""
    start, end = sorted((first, second))
    stored = X.tobytes()
    found: dict[str, Any] = {"offset": [5.0, 4.0, 3.0], "scale": [1.0, 0.1, 0.01]}
    expected = ((X.astype(np.float64) - found["offset"]) * found["scale"]).astype("<f4").tobytes()

    def read(begin: int, stop: int) -> Iterator[bytes]:
        return pieces(stored[begin:stop], size)()

    assert b"".join(read_normalized(read, found, start, end)) == expected[start:end]
