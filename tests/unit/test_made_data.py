"""Synthetic data sets by description: what is remembered of one is what its arrays are."""

from __future__ import annotations

import pytest

from texelgrad.datasets import content_hash
from texelgrad.made_data import describe
from texelgrad.spec_data import Synthetic


@pytest.mark.parametrize("kind", ["two_class_points", "spirals", "xor", "regression"])
def test_the_description_is_that_of_the_arrays(kind: str):
    """Shapes, statistics and hash; another seed is another data set."""
    made = describe(Synthetic.model_validate({"kind": kind, "rows": 37, "seed": 5}))
    arrays = made.arrays()
    assert [array.info for array in arrays] == [made.x, made.y]
    assert content_hash(arrays) == made.sha256
    assert made.x.rows == 37
    assert made.name == f"{kind}, 37 rows, seed 5"
    assert describe(Synthetic.model_validate({"kind": kind, "rows": 37, "seed": 6})).sha256 != made.sha256
