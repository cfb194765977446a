"""texelgrad/synthetic.py: reproducible to the bit, balanced, and as separable as it says."""

from __future__ import annotations

import hashlib
from typing import get_args

import numpy as np
import pytest

from texelgrad.rng import RandomStream, Stream
from texelgrad.synthetic import CENTRE, GENERATORS, SPREAD, regression, spirals, two_class_points, xor


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


@pytest.mark.parametrize("kind", GENERATORS)
def test_no_rows_are_refused(kind: str):
    """An empty data set is an error, not an empty array."""
    with pytest.raises(ValueError, match="at least 1"):
        GENERATORS[kind](0, 1)


@pytest.mark.parametrize("kind", GENERATORS)
def test_every_kind_is_reproducible(kind: str):
    """The same for the same seed, another for another; finite float32 inputs."""
    x, y = GENERATORS[kind](300, 5)
    again = GENERATORS[kind](300, 5)
    assert np.array_equal(x, again[0])
    assert np.array_equal(y, again[1])
    assert not np.array_equal(x, GENERATORS[kind](300, 6)[0])
    assert x.dtype == np.float32
    assert np.isfinite(x).all()
    assert len(x) == len(y) == 300


def test_the_schema_names_every_generator():
    """What a spec may ask for is what there is."""
    from texelgrad.spec_data import Synthetic

    assert set(get_args(Synthetic.model_fields["kind"].annotation)) == set(GENERATORS)


def test_spirals_wind_around_each_other():
    """Each point lies where its radius puts it on its arm of 3 pi (atan2 as an independent witness)."""
    x, y = spirals(2000, 1)
    radius = np.hypot(x[:, 0], x[:, 1])
    angle = np.arctan2(x[:, 1], x[:, 0])
    expected = 3 * np.pi * (radius - 0.1) / 0.9 + np.pi * (y == 0)
    off = np.abs((angle - expected + np.pi) % (2 * np.pi) - np.pi)
    assert np.all(off[radius > 0.4] < 0.8)
    assert np.median(off) < 0.2
    assert radius.max() > 0.9


def test_xor_is_xor():
    """By quadrants, about as many of each class."""
    x, y = xor(4000, 1)
    assert np.array_equal(y == 1, x[:, 0] * x[:, 1] < 0)
    assert abs(y.mean() - 0.5) < 0.05
    assert -1 < x.min() < -0.99 < 0.99 < x.max() < 1


def test_regression_is_what_it_says():
    """Least squares over the true terms finds the coefficients and the noise."""
    x, y = (array.astype(np.float64) for array in regression(20_000, 1))
    terms = np.stack([x[:, 0], x[:, 1], x[:, 2], x[:, 3], x[:, 0] * x[:, 3], np.ones(len(x))], axis=1)
    found, *_ = np.linalg.lstsq(terms, y)
    assert np.abs(found - [1, -2, 0.5, 0, 1, 0]).max() < 0.005
    assert abs((y - terms @ found).std() - 0.1) < 0.005
