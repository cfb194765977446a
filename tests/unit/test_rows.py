"""Arrays block by block: whatever their size, they are what NumPy makes of the whole, in bounded memory."""

from __future__ import annotations

import io
import tracemalloc
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from texelgrad.config import Settings
from texelgrad.datasets import content_hash, normalise, read_npys, read_upload
from texelgrad.errors import Invalid
from texelgrad.rows import BLOCK_BYTES, ArrayRows, Changed, Columns, Spool
from texelgrad.statistics import statistics

from tests.uploads import npy, npz

RANDOM = np.random.default_rng(8)
MANY = 3 * BLOCK_BYTES // 4 + 12_345  # float32 values, in more than three blocks
SETTINGS = Settings()


@pytest.mark.parametrize("shape", [(MANY,), (MANY // 7, 7), (5, MANY // 5), (0, 3), (4, 3, 2)])
def test_blocks_are_the_array(shape: tuple[int, ...]):
    """From memory, from a file, and as another type; read as often as wanted."""
    array = RANDOM.normal(size=shape).astype(np.float32)
    spool = Spool(np.float32)
    for block in ArrayRows(array).blocks():
        spool.append(block)
    rows = spool.rows(shape)
    del spool  # the rows keep it
    for _ in range(2):
        assert np.array_equal(rows.read(), array)
    assert np.array_equal(Changed(rows, np.dtype("<f8"), shape).read(), array.astype(np.float64))
    assert all(block.nbytes <= max(BLOCK_BYTES, array[:1].nbytes) for block in rows.blocks())


@pytest.mark.parametrize("columns", [1, 3, 1000, 1001])
def test_statistics_of_several_blocks(columns: int):
    """Moments far from 0, each feature by itself where they are few."""
    array = RANDOM.normal(300, 2, (MANY // columns, columns)) + 5 * np.arange(columns) / columns
    array[: len(array) // 2] -= 100  # the blocks differ
    array = array.astype(np.float32)
    found = statistics(ArrayRows(array), target=False, classes=None, columns=None, warnings=[])
    whole = array.astype(np.float64)
    assert (found.min, found.max) == (whole.min(), whole.max())
    assert found.mean == pytest.approx(whole.mean(), rel=1e-12)
    assert found.std == pytest.approx(whole.std(), rel=1e-10)
    assert found.warnings is None
    if columns > 1000:
        assert found.features is None
        return
    assert found.features is not None
    expected = {"min": whole.min(0), "max": whole.max(0), "mean": whole.mean(0), "std": whole.std(0)}
    for name, values in expected.items():
        np.testing.assert_allclose(found.features[name], values, rtol=1e-10)


def test_classes_are_counted_over_all_blocks():
    """Up to a thousand of them."""
    labels = np.arange(MANY, dtype=np.int32) % 1000
    found = statistics(ArrayRows(labels), target=True, classes=None, columns=None, warnings=[])
    assert found.counts == {str(number): int((labels == number).sum()) for number in range(1000)}
    labels[-1] = 1000
    assert statistics(ArrayRows(labels), target=True, classes=None, columns=None, warnings=[]).counts is None


def test_images_have_statistics_by_channel():
    x = RANDOM.random((6, 5, 4, 3), np.float32)
    found, _ = normalise(x, np.arange(6))
    assert found.info.stats.features is not None
    np.testing.assert_allclose(found.info.stats.features["mean"], x.mean(axis=(0, 1, 2)), rtol=1e-6)


def test_faults_name_the_place_in_the_whole():
    """Not the place within a block."""
    x = np.zeros((MANY, 1), np.float32)
    x[[MANY - 5, MANY - 2]] = np.nan
    with pytest.raises(Invalid) as caught:
        normalise(x, np.zeros(MANY))
    (fault,) = caught.value.faults
    assert fault.message == f"has 2 values that are not finite, the first at [{MANY - 5}, 0]"


def read_file(name: str, folder: Path) -> tuple[str, int]:
    """The content's hash, and bytes of memory that reading, checking, describing and hashing took at most."""
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in sorted(folder.glob(f"{name}.*"))]
        tracemalloc.start()
        try:
            arrays = (
                read_npys({"x": files[0], "y": files[1]}, SETTINGS)
                if name == "npy"
                else read_upload(files[0], name, SETTINGS, Columns())
            )
            assert arrays[0].rows.nbytes == 48 << 20
            return content_hash(arrays), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def test_large_files_take_little_memory(tmp_path: Path):
    """48 MiB in every format of arrays, in less than 40 MiB whatever the size; the same content whatever the format."""
    x = RANDOM.integers(0, 100, (12 << 20) // 64).astype(np.float32)[:, None].repeat(64, axis=1)
    y = np.arange(len(x)) % 10
    for name, data in (
        ("npz.1", npz(x=x, y=y)),
        ("safetensors.1", save({"x": x, "y": y})),
        ("npy.1", npy(x)),
        ("npy.2", npy(y)),
    ):
        (tmp_path / name).write_bytes(data)
    found = {name: read_file(name, tmp_path) for name in ("npz", "safetensors", "npy")}
    assert len({sha256 for sha256, _ in found.values()}) == 1
    assert max(peak for _, peak in found.values()) < 40 << 20, found


def test_columns_first():
    """Arrays in Fortran order are turned where they are small; else it is said how to turn them."""
    x = np.asfortranarray(RANDOM.normal(size=(50, 3)).astype(np.float32))
    for arrays in (
        read_upload(io.BytesIO(npz(x=x, y=np.arange(50))), "npz", SETTINGS, Columns()),
        read_npys({"x": io.BytesIO(npy(x)), "y": io.BytesIO(npy(np.arange(50)))}, SETTINGS),
    ):
        assert np.array_equal(arrays[0].data, x)
    large = np.asfortranarray(np.zeros((9 << 20, 2), np.float32))  # 72 MiB
    with pytest.raises(Invalid) as caught:
        read_npys({"x": io.BytesIO(npy(large)), "y": io.BytesIO(npy(np.arange(9 << 20)))}, SETTINGS)
    assert caught.value.faults[0].field == "x"
    assert "Fortran order" in caught.value.faults[0].message
