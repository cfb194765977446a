"""texelgrad/synthetic.py: reproducible to the bit, balanced, and as separable as it says."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from texelgrad.rng import RandomStream, Stream
from texelgrad.synthetic import CENTRE, SPREAD, two_class_points


def test_shapes_and_balance():
    """Classes take turns; types are what the engine takes."""
    x, y = two_class_points(101, 7)
    assert (x.shape, x.dtype) == ((101, 2), np.float32)
    assert (y.shape, y.dtype) == ((101,), np.int32)
    assert np.bincount(y).tolist() == [51, 50]


def test_the_bits_never_change():
    """The golden hash is that of the first version: a change would silently change every stored demo."""
    x, y = two_class_points(100, 7)
    digest = hashlib.sha256(x.astype("<f4").tobytes() + y.astype("<i4").tobytes()).hexdigest()
    assert digest == "d64daf4b453cf44278d9848f3b045911814570ea8a11bbc8a4ccfa26c347f13b"
    noise = RandomStream(7, Stream.SYNTHETIC).normal(2)
    assert x[0].tolist() == (noise * SPREAD - CENTRE).astype(np.float32).tolist()
    assert not np.array_equal(x, two_class_points(100, 8)[0])
    assert np.array_equal(two_class_points(40, 7)[0], x[:40]), "fewer rows are the first of more"


def test_the_clusters_are_where_they_should_be():
    """Means and spread within 5 standard errors; the line between them errs on about 0.03% of the points."""
    x, y = two_class_points(200_000, 3)
    for label, centre in ((0, -CENTRE), (1, CENTRE)):
        cluster = x[y == label].astype(np.float64)
        assert np.all(np.abs(cluster.mean(axis=0) - centre) < 5 * SPREAD / np.sqrt(100_000))
        assert np.all(np.abs(cluster.std(axis=0) / SPREAD - 1) < 5 / np.sqrt(200_000))
    wrong = np.mean((x.sum(axis=1) > 0) != (y == 1))
    assert 0.0002 < wrong < 0.0005


def test_no_rows_are_refused():
    """An empty data set is an error, not an empty array."""
    with pytest.raises(ValueError, match="at least 1"):
        two_class_points(0, 1)
