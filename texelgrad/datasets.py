"""Uploaded files as arrays: checked before anything is allocated, normalised to what the page reads. No database.

`x` becomes float32 [n, ...]; `y` int32 [n] where it is a column of whole numbers, else float32 [n] or [n, k].
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from texelgrad.config import Settings
from texelgrad.errors import Fault, Invalid
from texelgrad.jsonable import jsonable
from texelgrad.read_csv import read_csv
from texelgrad.read_images import read_images
from texelgrad.read_npy import Refused, read_npy
from texelgrad.read_npz import read_npz
from texelgrad.read_parquet import read_parquet
from texelgrad.read_safetensors import read_safetensors
from texelgrad.shapes import ArrayInfo, Stats

Array = NDArray[Any]
_MAX_AXES = 5  # rows and four more
_MAX_COUNTS = 1000  # classes of which it is told how many rows they have
_INT32 = np.iinfo(np.int32)


@dataclass(frozen=True)
class NamedArray:
    """One array of a data set, ready to be stored."""

    name: str
    role: str  # input | target
    info: ArrayInfo
    data: Array  # little-endian, C order

    def view(self) -> memoryview:
        """Its bytes, not copied."""
        return self.data.reshape(-1).view(np.uint8).data


def read_upload(
    file: IO[bytes], format_name: str, settings: Settings, target: str | None
) -> list[NamedArray]:
    """The arrays of an uploaded file. `target` names the label column of a CSV. Raises Invalid with every fault."""
    limit = settings.max_data_bytes
    if format_name == "csv":
        return normalise(*read_csv(file, target, limit))
    if format_name == "parquet":
        return normalise(*read_parquet(file, target, limit))
    if target is not None:
        legal = "leave it out: only tables have columns"
        raise Invalid([Fault("target", "is for CSV and Parquet files", target, legal)])
    if format_name == "images":
        return normalise(*read_images(file, limit))
    return normalise(*(read_npz if format_name == "npz" else read_safetensors)(file, limit))


def read_pair(x: IO[bytes], y: IO[bytes], settings: Settings) -> list[NamedArray]:
    """The arrays of two npy files; raises Invalid with every fault."""
    arrays: list[Array] = []
    faults: list[Fault] = []
    left = settings.max_data_bytes
    for name, file in (("x", x), ("y", y)):
        size = file.seek(0, 2)
        file.seek(0)
        left -= size
        if left < 0:
            raise Invalid([Fault(name, "is too large", size, f"{settings.max_data_bytes} bytes in all")])
        try:
            arrays.append(read_npy(file, name, size))
        except Refused as refused:
            faults.append(refused.fault)
        except (ValueError, EOFError, OSError) as error:
            faults.append(Fault(name, f"can't be read: {error}", None, "an array saved by NumPy"))
    if faults:
        raise Invalid(faults)
    x_array, y_array = arrays
    return normalise(x_array, y_array)


def normalise(x: Array, y: Array, classes: list[str] | None = None) -> list[NamedArray]:
    """Check two arrays against each other and for what no training survives; raises Invalid with every fault."""
    if x.ndim == 1:
        x = x[:, None]
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    faults = [fault for name, array in (("x", x), ("y", y)) for fault in _array_faults(name, array)]
    if y.ndim > 2:
        faults.append(Fault("y", "has too many axes", list(y.shape), "[n] or [n, k]"))
    if x.ndim and y.ndim and x.shape[0] != y.shape[0]:
        message = f"has {y.shape[0]} rows, x has {x.shape[0]}"
        faults.append(Fault("y", message, y.shape[0], f"{x.shape[0]} rows"))
    if faults:
        raise Invalid(faults)
    column = y.ndim == 1 and bool(np.all(y == np.floor(y)))  # of whole numbers, which may be classes
    whole = column and bool(y.min() >= _INT32.min and y.max() <= _INT32.max)
    stored_x, stored_y = x.astype("<f4"), y.astype("<i4" if whole else "<f4")
    if column and not whole and (lost := _merged(y, stored_y)):
        message = f"has {lost} whole numbers that float32 can't tell from others"
        legal = "whole numbers within int32, or of up to 24 bits"
        raise Invalid([Fault("y", message, jsonable(float(np.abs(y).max())), legal)])
    return [
        _named("x", "input", stored_x, warnings=_losses(x, stored_x)),
        _named("y", "target", stored_y, classes, [] if whole else _losses(y, stored_y, column=column)),
    ]


def _merged(given: Array, stored: Array) -> int:
    """How many different numbers of a column became equal to another."""
    return int(np.unique(given).size - np.unique(stored).size)


def _losses(given: Array, stored: Array, *, column: bool = False) -> list[str]:
    """What the values lose as float32 that a run would miss; `column`: whole numbers beyond int32."""
    warnings: list[str] = []
    if column:
        warnings.append("whole numbers beyond int32 are kept as float32: they can't be class numbers")
    if small := int(np.count_nonzero((np.abs(stored) < np.finfo(np.float32).tiny) & (given != 0))):
        values = "1 value other than 0 is" if small == 1 else f"{small} values other than 0 are"
        warnings.append(f"{values} below what float32 keeps, and taken as 0")
    return warnings


def content_hash(arrays: list[NamedArray]) -> str:
    """SHA-256, in hex, of the arrays' descriptions and bytes."""
    digest = hashlib.sha256()
    for array in arrays:
        described = [array.name, array.role, array.info.dtype, array.info.shape]
        names = array.info.stats.classes
        digest.update(json.dumps([*described, names] if names else described).encode())
        digest.update(array.view())
    return digest.hexdigest()


def _array_faults(name: str, array: Array) -> list[Fault]:
    """What is wrong with one array by itself."""
    if array.dtype.kind not in "biuf":
        return [Fault(name, "is not of numbers", str(array.dtype), "float, integer or boolean")]
    if not 1 <= array.ndim <= _MAX_AXES:
        return [Fault(name, "has a wrong number of axes", list(array.shape), f"1 to {_MAX_AXES}, rows first")]
    if array.size == 0:
        return [Fault(name, "is empty", list(array.shape), "at least one row and one value a row")]
    faults: list[Fault] = []
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            index = [int(axis) for axis in np.unravel_index(int(np.argmin(finite)), array.shape)]
            count = int(array.size - np.count_nonzero(finite))
            message = f"has {count} values that are not finite, the first at {index}"
            faults.append(Fault(name, message, jsonable(float(array[tuple(index)])), "finite numbers"))
        elif float(np.abs(array).max()) > float(np.finfo(np.float32).max):
            faults.append(
                Fault(name, "has values beyond float32", float(np.abs(array).max()), "up to 3.4e38")
            )
    return faults


def _counts(labels: Array) -> dict[str, int] | None:
    """How often each class number occurs, where there are few."""
    if labels.dtype.kind != "i":
        return None
    values, counts = np.unique(labels, return_counts=True)
    if len(values) > _MAX_COUNTS:
        return None
    return {str(value): int(count) for value, count in zip(values.tolist(), counts.tolist(), strict=True)}


def _named(
    name: str, role: str, array: Array, classes: list[str] | None = None, warnings: list[str] | None = None
) -> NamedArray:
    array = np.ascontiguousarray(array)
    mean = float(array.mean(dtype=np.float64))
    # The sum of squares from the mean, by pieces: a float64 copy of a large array would double its memory.
    pieces = np.array_split(array.reshape(-1), max(1, array.size >> 20))
    squares = sum(float(np.square(piece.astype(np.float64) - mean).sum()) for piece in pieces)
    info = ArrayInfo(
        dtype="int32" if array.dtype.kind == "i" else "float32",
        shape=tuple(array.shape),
        stats=Stats(
            min=float(array.min()),
            max=float(array.max()),
            integral=bool(np.all(array == np.floor(array))),
            row_sums_one=array.ndim == 2
            and bool(np.all(np.abs(array.sum(axis=1, dtype=np.float64) - 1) <= 1e-5)),
            mean=mean,
            std=math.sqrt(squares / array.size),
            counts=_counts(array) if role == "target" else None,
            classes=classes,
            warnings=warnings or None,
        ),
    )
    return NamedArray(name, role, info, array)
