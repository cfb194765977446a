"""Files of every upload format, small and right; other tests break them."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image
from pyarrow import parquet
from safetensors.numpy import save

X = np.arange(12, dtype=np.float32).reshape(6, 2)
Y = np.arange(6, dtype=np.int64) % 3


def npy(array: Any) -> bytes:
    """An npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def npz(**arrays: Any) -> bytes:
    """An npz file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def table(**columns: Any) -> bytes:
    """A Parquet file."""
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer, compression="snappy")
    return buffer.getvalue()


def image(pixels: Any, kind: str = "PNG") -> bytes:
    """An image file of uint8 [h, w] or [h, w, 3]."""
    buffer = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(buffer, kind)
    return buffer.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    """A zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


CORPUS: dict[str, bytes] = {
    "npz": npz(x=X, y=Y),
    "npy": npy(X),
    "csv": b"a,b,y\n" + b"".join(b"%g,%g,%d\n" % (*row, label) for row, label in zip(X, Y, strict=True)),
    "parquet": table(a=X[:, 0], b=X[:, 1], y=Y),
    "safetensors": save({"x": X, "y": Y}),
    "images": zipped(
        {
            "cat/1.png": image(np.arange(16).reshape(4, 4)),
            "cat/2.png": image(np.full((4, 4), 255)),
            "dog/1.png": image(np.zeros((4, 4))),
        }
    ),
}
"""One file of each format, by its name; tables have their targets in column `y`."""

TARGET = {"csv": "y", "parquet": "y"}
