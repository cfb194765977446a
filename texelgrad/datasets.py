"""Uploaded files as arrays: checked, and made into what the page reads, block by block. No database.

Inputs become float32 [n, ...]; `y` int32 [n] where it is a column of whole numbers, else float32 [n] or [n, k].
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO

import numpy as np

from texelgrad.config import Settings
from texelgrad.errors import Fault, Invalid
from texelgrad.inputs import INPUT, TARGET, WEIGHT, array_of
from texelgrad.jsonable import jsonable
from texelgrad.read_csv import read_csv
from texelgrad.read_images import read_images
from texelgrad.read_npy import Refused, read_npy
from texelgrad.read_npz import read_npz
from texelgrad.read_parquet import read_parquet
from texelgrad.read_safetensors import read_safetensors
from texelgrad.rows import Array, ArrayRows, Changed, Columns, Rows
from texelgrad.shapes import ArrayInfo
from texelgrad.statistics import statistics

_MAX_AXES = 5  # rows and four more
_INT32 = np.iinfo(np.int32)
_WHOLE = 2.0**24  # up to there float32 has every whole number


@dataclass(frozen=True)
class NamedArray:
    """One array of a data set, ready to be stored."""

    name: str
    role: str  # input | target | weight
    info: ArrayInfo
    rows: Rows  # little-endian

    def pieces(self) -> Iterator[memoryview]:
        """Its bytes in C order, some rows at a time."""
        for block in self.rows.blocks():
            yield block.reshape(-1).view(np.uint8).data

    @property
    def data(self) -> Array:
        """All of it in memory."""
        return self.rows.read()


def read_upload(file: IO[bytes], format_name: str, settings: Settings, columns: Columns) -> list[NamedArray]:
    """The arrays of an uploaded file, which stays open as long as they are read; raises Invalid with every fault.

    `columns` are those of a table that hold no inputs.
    """
    limit = settings.max_data_bytes
    if format_name == "csv":
        return normalise(**vars(read_csv(file, columns, limit)))
    if format_name == "parquet":
        return normalise(**vars(read_parquet(file, columns, limit)))
    if named := columns.named():
        legal = "leave it out: only tables have columns"
        raise Invalid(
            [Fault(field, "is for CSV and Parquet files", name, legal) for field, name in named.items()]
        )
    if format_name == "npy":
        return read_npys({"x": file}, settings)
    if format_name == "images":
        return normalise(**vars(read_images(file, limit)))
    return normalise_named(read_npz(file, limit) if format_name == "npz" else read_safetensors(file, limit))


def read_npys(files: Mapping[str, IO[bytes]], settings: Settings) -> list[NamedArray]:
    """The arrays of npy files, `x` and perhaps `y` and `w`, which stay open as long as they are read.

    Raises Invalid with every fault.
    """
    found: dict[str, Rows] = {}
    faults: list[Fault] = []
    left = settings.max_data_bytes
    for name, file in files.items():
        size = file.seek(0, 2)
        file.seek(0)
        left -= size
        if left < 0:
            raise Invalid([Fault(name, "is too large", size, f"{settings.max_data_bytes} bytes in all")])
        try:
            found[name] = read_npy(file, name, size)
        except Refused as refused:
            faults.append(refused.fault)
        except (ValueError, EOFError, OSError) as error:
            faults.append(Fault(name, f"can't be read: {error}", None, "an array saved by NumPy"))
    if faults:
        raise Invalid(faults)
    return normalise_named(found)


def normalise(
    x: Rows | Array,
    y: Rows | Array | None = None,
    w: Rows | Array | None = None,
    classes: list[str] | None = None,
    columns: list[str] | None = None,
) -> list[NamedArray]:
    """The arrays of a data set of one input without a name; as `normalise_named`. `columns` are the names of x's."""
    given = {array_of(INPUT): x, TARGET: y, WEIGHT: w}
    there = {name: _rows(each) for name, each in given.items() if each is not None}
    return normalise_named(there, classes, columns)


def normalise_named(
    arrays: Mapping[str, Rows], classes: list[str] | None = None, columns: list[str] | None = None
) -> list[NamedArray]:
    """Check arrays against each other and for what no training survives; raises Invalid with every fault.

    Those that are neither targets `y` nor `w`, what each row counts for, are inputs; without targets they are for
    predictions. `classes` are the names of what y numbers, `columns` those of a table's inputs.
    """
    inputs = {
        name: Changed(each, each.dtype, (*each.shape, 1)) if len(each.shape) == 1 else each
        for name, each in arrays.items()
        if name not in (TARGET, WEIGHT)
    }
    y, w = arrays.get(TARGET), arrays.get(WEIGHT)
    faults = [fault for name, each in inputs.items() for fault in _array_faults(name, each)]
    counts = {name: each.shape[0] for name, each in inputs.items() if each.shape}
    column = None
    if y is not None:
        y = _flat(y)
        column = _Column() if len(y.shape) == 1 else None
        faults += _array_faults("y", y, column)
        counts |= {TARGET: y.shape[0]} if y.shape else {}
    (rows, _), *_ = Counter(counts.values()).most_common(1) or [(0, 0)]  # of two, the first
    usual = next((name for name, own in counts.items() if own == rows), "")
    for name, own in counts.items():
        if own != rows:
            faults.append(Fault(name, f"has {own} rows, {usual} has {rows}", own, f"{rows} rows"))
    if w is not None:
        w = _flat(w)
        faults.extend(_array_faults("w", w) or _weight_faults(w, rows))
    if faults:
        raise Invalid(faults)
    whole = column is not None and column.fits_int32
    return [
        *(_named(name, "input", each, "<f4", columns=columns) for name, each in inputs.items()),
        *([_named("y", "target", y, "<i4" if whole else "<f4", classes, column)] if y is not None else []),
        *([_named("w", "weight", w, "<f4")] if w is not None else []),
    ]


def _rows(array: Rows | Array) -> Rows:
    return ArrayRows(array) if isinstance(array, np.ndarray) else array


def _flat(rows: Rows) -> Rows:
    """One axis where there is one value a row, else two: images become rows in C order."""
    if len(rows.shape) < 2:
        return rows
    width = math.prod(rows.shape[1:])
    return Changed(rows, rows.dtype, rows.shape[:1] if width == 1 else (rows.shape[0], width))


def _weight_faults(w: Rows, rows: int) -> list[Fault]:
    """Whether there is a number of at least 0 for each row, and not 0 for all, as float32 without subnormals: as GPUs have it."""
    if w.shape != (rows,):
        return [Fault("w", "is not one number a row", list(w.shape), f"[{rows}]")]
    least, most = math.inf, 0.0
    for block in w.blocks():
        stored = block.astype(np.float32)
        least, most = min(least, float(stored.min())), max(most, float(stored.max()))
    if least < 0:
        return [Fault("w", "has weights below 0", least, "at least 0")]
    if most < np.finfo(np.float32).tiny:
        return [Fault("w", "has only weights of 0", most, "at least one above 0, of 1.2e-38 or more")]
    return []


class _Column:
    """What a column of targets holds: whole numbers may be classes, of which none may become another."""

    def __init__(self) -> None:
        self.whole = True
        self.low, self.high = math.inf, -math.inf

    def add(self, values: Array) -> None:
        """Look at some more values, all of them finite."""
        self.whole = self.whole and bool(np.all(values == np.floor(values)))
        self.low, self.high = min(self.low, values.min()), max(self.high, values.max())

    @property
    def fits_int32(self) -> bool:
        """Whether it is stored as int32."""
        return self.whole and self.low >= _INT32.min and self.high <= _INT32.max


def _merged(rows: Rows) -> int:
    """How many different numbers become equal to another as float32."""
    given, stored = np.empty(0, rows.dtype), np.empty(0, np.float32)
    for block in rows.blocks():
        given = np.union1d(given, block)
        stored = np.union1d(stored, block.astype(np.float32))
    return int(given.size - stored.size)


def content_hash(arrays: list[NamedArray]) -> str:
    """SHA-256, in hex, of the arrays' descriptions and bytes."""
    digest = hashlib.sha256()
    for array in arrays:
        described = [array.name, array.role, array.info.dtype, array.info.shape]
        stats = array.info.stats
        classes = [stats.classes] if stats.classes else []
        columns = [{"columns": stats.columns}] if stats.columns else []
        digest.update(json.dumps([*described, *classes, *columns]).encode())
        for piece in array.pieces():
            digest.update(piece)
    return digest.hexdigest()


def _array_faults(name: str, rows: Rows, column: _Column | None = None) -> list[Fault]:
    """What is wrong with one array by itself; tells `column` what it holds."""
    if rows.dtype.kind not in "biuf":
        return [Fault(name, "is not of numbers", str(rows.dtype), "float, integer or boolean")]
    if not 1 <= len(rows.shape) <= _MAX_AXES:
        return [Fault(name, "has a wrong number of axes", list(rows.shape), f"1 to {_MAX_AXES}, rows first")]
    if math.prod(rows.shape) == 0:
        return [Fault(name, "is empty", list(rows.shape), "at least one row and one value a row")]
    count, first, largest = 0, None, 0.0
    passed = 0  # rows before the block
    for block in rows.blocks():
        if block.dtype.kind == "f" and not (finite := np.isfinite(block)).all():
            if first is None:
                index = np.unravel_index(int(np.argmin(finite)), block.shape)
                first = [passed + int(index[0]), *map(int, index[1:])], float(block[index])
            count += int(block.size - np.count_nonzero(finite))
        elif column is not None and count == 0:
            column.add(block)
        if block.dtype.kind == "f" and count == 0:
            largest = max(largest, float(np.abs(block).max()))
        passed += len(block)
    if first is not None:
        message = f"has {count} values that are not finite, the first at {first[0]}"
        return [Fault(name, message, jsonable(first[1]), "finite numbers")]
    if largest > float(np.finfo(np.float32).max):
        return [Fault(name, "has values beyond float32", largest, "up to 3.4e38")]
    return []


def _named(
    name: str,
    role: str,
    given: Rows,
    dtype: str,
    classes: list[str] | None = None,
    column: _Column | None = None,
    columns: list[str] | None = None,
) -> NamedArray:
    """The array as it is stored; raises Invalid where that would merge classes."""
    stored = Changed(given, np.dtype(dtype), given.shape)
    warnings: list[str] = []
    if column is not None and column.whole and not column.fits_int32:
        if lost := _merged(given):
            message = f"has {lost} whole numbers that float32 can't tell from others"
            legal = "whole numbers within int32, or of up to 24 bits"
            largest = max(abs(float(column.low)), abs(float(column.high)))
            raise Invalid([Fault("y", message, jsonable(largest), legal)])
        warnings.append("whole numbers beyond int32 are kept as float32: they can't be class numbers")
    elif dtype == "<f4" and (rounded := np.sum([_rounded(block) for block in given.blocks()], axis=0)).any():
        count = int(rounded.sum())
        numbers = "1 whole number is" if count == 1 else f"{count} whole numbers are"
        where = f", in {_column_names(columns, rounded)}" if columns else ""
        warnings.append(f"{numbers} beyond 2^24 and between what float32 keeps, and rounded{where}")
    lost, small = np.sum([_tiny(block) for block in given.blocks()], axis=0) if dtype == "<f4" else (0, 0)
    if lost:
        values = "1 value other than 0 is" if lost == 1 else f"{lost} values other than 0 are"
        warnings.append(f"{values} below what float32 keeps, and stored as 0")
    if small:
        values = "1 value is" if small == 1 else f"{small} values are"
        unless = ", unless data.normalize makes them larger" if role == "input" else ""
        warnings.append(f"{values} subnormal in float32 (below 1.2e-38): GPUs take them as 0{unless}")
    stats = statistics(stored, target=role == "target", classes=classes, columns=columns, warnings=warnings)
    kind = "int32" if stored.dtype.kind == "i" else "float32"
    return NamedArray(name, role, ArrayInfo(kind, tuple(given.shape), stats), stored)


def _rounded(block: Array) -> Array:
    """How many whole numbers of each column float32 does not hold as they are: counters, times, money in cents, ..."""
    rounded = np.abs(block.astype(np.float64)) > _WHOLE
    large = block[rounded]
    exact = large.astype(np.longdouble)  # 64 bits hold every integer type
    rounded[rounded] = (exact != large.astype(np.float32)) & (exact == np.floor(exact))
    return rounded.reshape(-1, block.shape[-1] if block.ndim > 1 else 1).sum(axis=0)


def _column_names(columns: list[str], counts: Array) -> str:
    """The first of the columns that have a count, in words."""
    names = [columns[index][:64] for index in np.flatnonzero(counts)]
    more = f" and {len(names) - 5} more" if names[5:] else ""
    return f"{'column' if len(names) == 1 else 'columns'} {', '.join(names[:5])}{more}"


def _tiny(block: Array) -> tuple[int, int]:
    """How many values other than 0 are 0 as float32, and how many are subnormal: a GPU may take those as 0."""
    stored = np.abs(block.astype(np.float32))
    lost = np.count_nonzero((stored == 0) & (block != 0))
    return int(lost), int(np.count_nonzero((stored < np.finfo(np.float32).tiny) & (stored > 0)))
