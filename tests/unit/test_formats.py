"""Readers of uploads: what is right becomes the same arrays, what is not is refused with its fault."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from safetensors.numpy import save

from texelgrad.config import Settings
from texelgrad.datasets import NamedArray, read_npys, read_upload
from texelgrad.errors import Invalid
from texelgrad.formats import FORMATS, format_of
from texelgrad.rows import Columns

from tests.uploads import CORPUS, TARGET, X, Y, image, npy, npz, table, zipped

SETTINGS = Settings(max_data_bytes=1 << 20)


def read(
    data: bytes, kind: str, target: str | None = None, settings: Settings = SETTINGS
) -> list[NamedArray]:
    """The arrays of a file."""
    return read_upload(io.BytesIO(data), kind, settings, Columns(target or TARGET.get(kind)))


def fields_of(call: Callable[[], Any]) -> list[str]:
    """The fields that a refusal names."""
    with pytest.raises(Invalid) as caught:
        call()
    return [fault.field for fault in caught.value.faults]


def test_the_corpus_has_every_format():
    assert set(CORPUS) == set(FORMATS)


@pytest.mark.parametrize("kind", ["npz", "csv", "parquet", "safetensors"])
def test_every_format_gives_the_same_arrays(kind: str):
    """The content is what counts, not the packing: equal data sets are stored once."""
    x, y = read(CORPUS[kind], kind)
    assert np.array_equal(x.data, X)
    assert np.array_equal(y.data, Y)
    assert (x.info.dtype, y.info.dtype) == ("float32", "int32")
    assert x.info.stats.mean == pytest.approx(5.5)
    assert x.info.stats.std == pytest.approx(X.std())
    assert y.info.stats.counts == {"0": 2, "1": 2, "2": 2}


@pytest.mark.parametrize(
    ("data", "kind", "target"),
    [
        (npz(x=X), "npz", None),
        (npy(X), "npy", None),
        (b"a,b\n" + b"".join(b"%g,%g\n" % (*row,) for row in X), "csv", None),
        (table(a=X[:, 0], b=X[:, 1]), "parquet", None),
        (save({"x": X}), "safetensors", None),
    ],
)
def test_inputs_without_targets(data: bytes, kind: str, target: str | None):
    """For predictions: the same content whatever the format; nothing stands in for y."""
    (x,) = read_upload(io.BytesIO(data), kind, SETTINGS, Columns(target))
    assert (x.name, x.role, x.info.dtype) == ("x", "input", "float32")
    assert np.array_equal(x.data, X)


def test_images_without_classes():
    """In no folder, in the order of their names; some in a folder and some not is a mistake."""
    files = {"2.png": image(np.full((4, 4), 255)), "1.png": image(np.zeros((4, 4)))}
    (x,) = read(zipped(files), "images")
    assert x.data.reshape(2, 16).mean(axis=1).tolist() == [0, 1]
    assert fields_of(lambda: read(zipped({**files, "cat/1.png": files["1.png"]}), "images")) == ["cat/1.png"]


def test_images_as_targets():
    """Stored as flat rows in C order; one value a row is a column, whatever its axes."""
    y = np.random.default_rng(1).random((6, 2, 3, 1))
    _, stored = read(npz(x=X, y=y), "npz")
    assert np.array_equal(stored.data, y.reshape(6, 6).astype(np.float32))
    _, column = read(npz(x=X, y=Y.reshape(6, 1, 1)), "npz")
    assert (column.info.dtype, column.data.tolist()) == ("int32", Y.tolist())


WEIGHTS = np.array([1, 0, 2, 0.5, 1, 1])


@pytest.mark.parametrize(
    ("data", "kind", "columns"),
    [
        (save({"w": WEIGHTS, "x": X, "y": Y}), "safetensors", Columns()),
        (table(w=WEIGHTS, a=X[:, 0], y=Y, b=X[:, 1]), "parquet", Columns("y", "w")),
        (
            b"a,w,b,y\n"
            + b"".join(b"%g,%g,%g,%d\n" % (a, w, b, y) for (a, b), w, y in zip(X, WEIGHTS, Y, strict=True)),
            "csv",
            Columns("y", "w"),
        ),
    ],
)
def test_weights_of_rows_in_other_formats(data: bytes, kind: str, columns: Columns):
    """As in npz; a table names their column, which is no input then."""
    x, y, w = read_upload(io.BytesIO(data), kind, SETTINGS, columns)
    assert (w.name, w.role, w.data.tolist()) == ("w", "weight", WEIGHTS.tolist())
    assert np.array_equal(x.data, X)
    assert np.array_equal(y.data, Y)
    assert x.info.stats.columns == (["a", "b"] if columns.named() else None)
    assert y.info.stats.columns is None


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (Columns("y", "z"), ["weight"]),
        (Columns("y", "y"), ["weight"]),
        (Columns("q", "z"), ["target", "weight"]),
    ],
)
def test_columns_that_are_not_there(kind: str, columns: Columns, expected: list[str]):
    """Each field that names a wrong one."""
    assert fields_of(lambda: read_upload(io.BytesIO(CORPUS[kind]), kind, SETTINGS, columns)) == expected


@pytest.mark.parametrize("w", [np.arange(6), np.linspace(0, 3, 6)[:, None]])
def test_weights_of_rows(w: Any):
    """A third array of an npz file, a float32 for each row."""
    file = io.BytesIO()
    np.savez(file, x=X, y=Y, w=w)
    x, y, weights = read(file.getvalue(), "npz")
    assert (x.role, y.role, weights.role, weights.info.dtype) == ("input", "target", "weight", "float32")
    assert np.array_equal(weights.data, w.reshape(-1).astype(np.float32))


@pytest.mark.parametrize(
    "w",
    [
        np.ones(5),
        np.ones((6, 2)),
        [1, 1, -0.5, 1, 1, 1],
        np.zeros(6),
        [1, 1, np.nan, 1, 1, 1],
        np.full(6, 1e-46),
        np.full(6, 1e-39),
    ],
)
def test_weights_of_rows_that_are_refused(w: Any):
    """Not one a row, below 0, all 0, not finite, all 0 as float32 or in a GPU, which has no subnormals."""
    file = io.BytesIO()
    np.savez(file, x=X, y=Y, w=w)
    assert fields_of(lambda: read(file.getvalue(), "npz")) == ["w"]


@pytest.mark.parametrize(
    ("w", "told"),
    [
        (np.zeros(6), ("has only weights of 0", "at least one above 0, of 1.2e-38 or more")),
        (np.full(6, 1e-39), ("has only weights of 0", "at least one above 0, of 1.2e-38 or more")),
        ([0, 0, -1, 0, 0, 0], ("has weights below 0", "at least 0")),
    ],
)
def test_what_weights_of_rows_may_be(w: Any, told: tuple[str, str]):
    """What is legal is never what was given."""
    with pytest.raises(Invalid) as caught:
        read(npz(x=X, y=Y, w=w), "npz")
    (fault,) = caught.value.faults
    assert (fault.message, fault.legal) == told


@pytest.mark.parametrize("data", [b"", b"no image", b"\x89PNG"])
def test_a_bad_image_is_named_by_its_member(data: bytes):
    """Not by the object that its bytes were in."""
    with pytest.raises(Invalid) as caught:
        read(zipped({"cat/1.png": data}), "images")
    (fault,) = caught.value.faults
    assert fault.field == "cat/1.png"
    assert fault.message == "can't be read: it is no PNG or JPEG image, or a damaged one"


@pytest.mark.parametrize("data", [bytes(range(256)), b"\xff\xd8\xff", b"a\0b", b"%PDF-1.7\n\x80\x81"])
def test_what_is_of_no_format(data: bytes):
    """It is not called a bad CSV file, but told what is known here."""
    with pytest.raises(Invalid) as caught:
        format_of(io.BytesIO(data), "", "application/octet-stream")
    (fault,) = caught.value.faults
    assert fault.field == "file"
    assert all(word in str(fault.legal) for word in ("npz", "npy", "CSV", "Parquet", "safetensors", "zip"))


def test_text_whose_start_ends_within_a_character():
    """Is text all the same."""
    file = io.BytesIO(b"a" * 4095 + "é".encode())
    assert format_of(file, "", "") == "csv"


@pytest.mark.parametrize("kind", FORMATS)
def test_formats_are_told_by_their_first_bytes(kind: str):
    """Without a name or a type that says so; the file is left at its start."""
    file = io.BytesIO(CORPUS[kind])
    assert format_of(file, "", "application/octet-stream") == kind
    assert file.tell() == 0


def test_names_and_types_go_first():
    assert format_of(io.BytesIO(b"PK"), "a.CSV", "") == "csv"
    assert format_of(io.BytesIO(b"PK"), "", "text/csv") == "csv"
    assert format_of(io.BytesIO(b"PK not a zip"), "", "") == "npz"


def test_a_pair_of_npy_files():
    x, y = read_npys({"x": io.BytesIO(npy(X)), "y": io.BytesIO(npy(Y))}, SETTINGS)
    assert np.array_equal(x.data, X)
    assert np.array_equal(y.data, Y)
    assert fields_of(lambda: read_npys({"x": io.BytesIO(npy(X)[:-1]), "y": io.BytesIO(b"")}, SETTINGS)) == [
        "x",
        "y",
    ]
    assert fields_of(
        lambda: read_npys({"x": io.BytesIO(npy(np.zeros(1 << 18))), "y": io.BytesIO(b"")}, SETTINGS)
    ) == ["x"]
    objects = np.array([object()] * 6)
    assert fields_of(
        lambda: read_npys({"x": io.BytesIO(npy(X)), "y": io.BytesIO(npy(objects))}, SETTINGS)
    ) == ["y"]


def test_images():
    """Folders are classes in the order of their names; grey stays one channel, 255 is 1."""
    x, y = read(CORPUS["images"], "images")
    assert x.info.shape == (3, 4, 4, 1)
    assert np.array_equal(x.data[0, :, :, 0], np.arange(16, dtype=np.float32).reshape(4, 4) / np.float32(255))
    assert x.data[1].min() == 1.0
    assert y.data.tolist() == [0, 0, 1]
    assert y.info.stats.classes == ["cat", "dog"]


def test_colour_images_below_one_folder():
    """As an archive of a folder has them; JPEG is close, and grey among colours becomes grey colours."""
    red = np.zeros((8, 8, 3))
    red[:, :, 0] = 200
    files = {"set/a/1.jpg": image(red, "JPEG"), "set/b/1.png": image(np.full((8, 8), 51))}
    x, y = read(zipped(files), "images")
    assert x.info.shape == (2, 8, 8, 3)
    assert np.abs(x.data[0] * 255 - red).max() < 4
    assert np.array_equal(x.data[1], np.full((8, 8, 3), 0.2, np.float32))
    assert y.data.tolist() == [0, 1]


def tensors(**changes: Any) -> bytes:
    """A safetensors file whose header says something else of x."""
    header = {
        "x": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "y": {"dtype": "I64", "shape": [2], "data_offsets": [16, 32]},
    }
    header["x"] |= changes
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(32)


PNG = image(np.zeros((4, 4)))


@pytest.mark.parametrize(
    ("data", "kind", "target", "expected"),
    [
        (b"", "safetensors", None, ["file"]),
        (struct.pack("<Q", 1 << 40), "safetensors", None, ["file"]),
        (struct.pack("<Q", 100) + b"{}", "safetensors", None, ["file"]),
        (struct.pack("<Q", 2) + b"[]", "safetensors", None, ["file"]),
        (save({"y": Y}), "safetensors", None, ["file"]),
        (save({"x": X, "z": Y}), "safetensors", None, ["file"]),
        (npz(y=Y), "npz", None, ["file"]),
        (npz(x=X, z=Y), "npz", None, ["file"]),
        (npz(x=X, w=Y[:4]), "npz", None, ["w"]),
        (npy(X)[:-1], "npy", None, ["x"]),
        (npy(X), "npy", "y", ["target"]),
        (tensors(dtype="F99"), "safetensors", None, ["x"]),
        (tensors(shape=[-2, -2]), "safetensors", None, ["x"]),
        (tensors(shape=[1 << 40, 1 << 40]), "safetensors", None, ["x"]),
        (tensors(shape=[True, 4]), "safetensors", None, ["x"]),
        (tensors(data_offsets=[0, 1 << 50]), "safetensors", None, ["x"]),
        (tensors(data_offsets=[16, 32]), "safetensors", None, ["file"]),
        (tensors() + b"more", "safetensors", None, ["file"]),
        (tensors(), "safetensors", "y", ["target"]),
        (b"PAR1", "parquet", "y", ["file"]),
        (CORPUS["parquet"][:-10], "parquet", "y", ["file"]),
        (CORPUS["parquet"], "parquet", "z", ["target"]),
        (table(a=X[:, 0]), "parquet", "a", ["file"]),
        (table(a=["x", "y"], y=[1, 2]), "parquet", "y", ["column a"]),
        (table(a=pa.array([1.0, None]), y=[1, 2]), "parquet", "y", ["column a"]),
        (table(a=pa.array([], pa.float64()), y=pa.array([], pa.int8())), "parquet", "y", ["file"]),
        (table(a=np.zeros(200_000), y=np.zeros(200_000)), "parquet", "y", ["file"]),
        (table(a=[np.nan], y=[1]), "parquet", "y", ["x"]),
        (b"PK", "images", None, ["file"]),
        (zipped({}), "images", None, ["file"]),
        (zipped({"a/b/c/1.png": PNG}), "images", None, ["a/b/c/1.png"]),
        (zipped({"a/1.gif": PNG}), "images", None, ["a/1.gif"]),
        (zipped({"a/1.png": b"\x89PNG"}), "images", None, ["a/1.png"]),
        (zipped({"a/1.png": PNG, "a/2.png": PNG[:40]}), "images", None, ["a/2.png"]),
        (zipped({"a/1.png": PNG, "b/2.png": image(np.zeros((4, 5)))}), "images", None, ["b/2.png"]),
        (zipped({"a/1.png": image(np.zeros((4097, 1)))}), "images", None, ["a/1.png"]),
        (zipped({f"a/{n}.png": image(np.zeros((512, 512))) for n in range(2)}), "images", None, ["file"]),
        (zipped({"a\x07b/1.png": PNG}), "images", None, ["a\x07b/1.png"]),
    ],
)
def test_a_file_that_is_not_right(data: bytes, kind: str, target: str | None, expected: list[str]):
    """Its fault is named, whatever it promises; nothing is allocated for a lie."""
    assert fields_of(lambda: read(data, kind, target)) == expected


def test_an_image_that_promises_a_million_pixels_a_side():
    """A header is enough to refuse it: nothing is decoded."""
    huge = bytearray(PNG)
    huge[16:24] = struct.pack(">II", 1_000_000, 1_000_000)
    import zlib

    huge[29:33] = struct.pack(">I", zlib.crc32(huge[12:29]))
    assert fields_of(lambda: read(zipped({"a/1.png": bytes(huge)}), "images")) == ["a/1.png"]


def test_old_descriptions_can_still_be_read():
    """Statistics that were stored before there were means."""
    from texelgrad.shapes import Stats

    assert Stats(min=0, max=1, integral=True, row_sums_one=False).mean is None


def test_npz_of_the_corpus_is_the_one_that_numpy_writes():
    with np.load(io.BytesIO(npz(x=X, y=Y))) as arrays:
        assert np.array_equal(arrays["x"], X)
