"""Rows that the page holds outside of textures: in blocks, whatever pieces they come in."""

from __future__ import annotations

import numpy as np
import pytest

from ..node import call


@pytest.mark.parametrize("columns", [1, 3, 8])
@pytest.mark.parametrize("block_bytes", [4, 32, 100, 10_000])
@pytest.mark.parametrize("pieces", [[23], [1] * 23, [5, 7, 11], [16, 7]])
def test_rows_are_found_again(columns: int, block_bytes: int, pieces: list[int]):
    """In any order, some of them twice; a block may be smaller than a row or larger than all."""
    x = np.arange(23 * columns, dtype=np.float32).reshape(23, columns)
    order = np.random.default_rng(columns).integers(0, 23, 40).tolist()
    found = call("/tests/unit/data_probe.js", "held", x, block_bytes, pieces, order)
    assert np.array_equal(found, x[order])
