"""Stored safetensors files as arrays that are not in memory, and arrays as bytes, block by block."""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texelgrad import artifacts
from texelgrad.db import Database

Tensors = Mapping[str, NDArray[Any]]
Pieces = Iterator[bytes | memoryview]

BLOCK_BYTES = 4 << 20
_DTYPES = {"F32": "<f4", "F64": "<f8"}  # what pages write


@contextmanager
def opened_tensors(db: Database, artifact_id: str) -> Generator[dict[str, NDArray[Any]]]:
    """The tensors of an artifact, mapped from a temporary file that lasts as long as this; raises Damaged."""
    with tempfile.TemporaryFile() as file:
        with db.read() as session:
            artifacts.check_intact(session, artifact_id)
            for piece in artifacts.open_range(session, artifact_id):
                file.write(piece)
        file.seek(0)
        (size,) = struct.unpack("<Q", file.read(8))
        header: dict[str, Any] = json.loads(file.read(size))
        header.pop("__metadata__", None)
        yield {
            name: np.memmap(
                file, _DTYPES[entry["dtype"]], "r", 8 + size + entry["data_offsets"][0], tuple(entry["shape"])
            )
            for name, entry in header.items()
        }


def pieces_of(values: NDArray[Any], dtype: Any = None) -> Pieces:
    """The bytes of an array in C order, converted to `dtype` block by block."""
    if values.flags.c_contiguous:
        values = values.reshape(-1)  # a view, of which even one row may be too much
    step = max(1, BLOCK_BYTES // max(1, values.nbytes // max(1, len(values))))
    for start in range(0, len(values), step):
        block = np.ascontiguousarray(values[start : start + step], dtype)
        yield block.reshape(-1).view(np.uint8).data
