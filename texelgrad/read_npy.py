"""One array of an npy stream that nobody trusts: header and size are checked before anything is kept, nothing unpickled."""

from __future__ import annotations

import ast
import math
from typing import IO, Any, cast

import numpy as np

from texelgrad.errors import Fault
from texelgrad.rows import ArrayRows, FileRows, Rows, Spool

_MAGIC = b"\x93NUMPY"
_LENGTHS = {b"\1\0": 2, b"\2\0": 4, b"\3\0": 4}  # bytes of the header's length, by version
_KEYS = {"descr", "fortran_order", "shape"}
_MAX_HEADER = 10_000  # bytes
_BLOCK = 1 << 20  # bytes read at once
_MAX_FORTRAN = 64 << 20  # bytes of an array whose columns come first


class Refused(Exception):
    """The stream is no array that can be used; carries the fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def read_npy(file: IO[bytes], name: str, total: int) -> Rows:
    """The array called `name`, of a file of `total` bytes that stays open; raises Refused, ValueError or EOFError."""
    shape, fortran, dtype, start = _layout(file, name, total)
    rows = FileRows(file, start, dtype, shape)
    return _from_fortran(rows, name) if fortran else rows


def copy_npy(stream: IO[bytes], name: str, total: int) -> Rows:
    """The same of a stream that ends, which is copied."""
    shape, fortran, dtype, start = _layout(stream, name, total)
    spool = Spool(dtype)
    left = total - start
    while left:
        block = stream.read(min(_BLOCK, left))
        if not block:
            raise Refused(Fault(name, "ends too early", total - start - left, f"{total - start} bytes"))
        spool.append_bytes(block)
        left -= len(block)
    if stream.read(1):  # also makes zipfile compare the checksum
        raise Refused(Fault(name, "goes on after its end", None, f"{total - start} bytes"))
    rows = spool.rows(shape)
    return _from_fortran(rows, name) if fortran else rows


def _layout(stream: IO[bytes], name: str, total: int) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether in Fortran order, dtype, and where the values begin; raises Refused or ValueError."""
    counted = _Counted(stream, name)
    shape, fortran, dtype = _read_header(counted)
    if dtype.hasobject or dtype.kind not in "biuf" or dtype.names is not None:
        raise Refused(Fault(name, "is not of numbers", str(dtype), "float, integer or boolean"))
    if any(axis < 0 for axis in shape):
        raise Refused(Fault(name, "has a negative axis", list(shape), "lengths of at least 0"))
    size = math.prod(shape) * dtype.itemsize
    left = total - counted.taken
    if size != left:
        message = f"says {list(shape)} of {dtype}, {size} bytes, but has {left}"
        raise Refused(Fault(name, message, left, f"{size} bytes"))
    return shape, fortran and len(shape) > 1, dtype, counted.taken


def _from_fortran(rows: FileRows, name: str) -> Rows:
    """The array in C order, which takes all of it in memory."""
    if rows.nbytes > _MAX_FORTRAN:
        legal = f"C order (numpy.ascontiguousarray), or at most {_MAX_FORTRAN} bytes"
        raise Refused(Fault(name, f"is in Fortran order and has {rows.nbytes} bytes", rows.nbytes, legal))
    flat = FileRows(rows.file, rows.start, rows.dtype, (math.prod(rows.shape),), rows.owner).read()
    return ArrayRows(np.ascontiguousarray(flat.reshape(rows.shape, order="F")))


def _read_header(stream: _Counted) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether in Fortran order, and dtype; raises ValueError.

    NumPy's own reader mends headers of Python 2 through `tokenize`, which raises errors of many kinds.
    """
    start = stream.read(8)
    if len(start) < 8 or start[:6] != _MAGIC or start[6:] not in _LENGTHS:
        raise ValueError("there is no npy header of version 1, 2 or 3")
    length = stream.read(_LENGTHS[start[6:]])
    size = int.from_bytes(length, "little")
    if size > _MAX_HEADER:
        raise ValueError(f"its header has {size} bytes")
    try:
        header = ast.literal_eval(stream.read(size).decode("utf-8" if start[6] == 3 else "latin-1"))
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"its header can't be read: {error}") from None
    if not isinstance(header, dict) or set(cast(dict[Any, Any], header)) != _KEYS:
        raise ValueError("its header is not what NumPy writes")
    shape, fortran, kind = (cast(dict[str, Any], header)[key] for key in ("shape", "fortran_order", "descr"))
    whole = isinstance(shape, tuple) and all(type(axis) is int for axis in cast(tuple[Any, ...], shape))
    if not whole or not isinstance(fortran, bool):
        raise ValueError("its header has no shape or no order")
    if not isinstance(kind, str):  # a record type
        raise Refused(Fault(stream.name, "is not of numbers", str(kind)[:100], "float, integer or boolean"))
    try:
        return shape, fortran, np.dtype(kind)
    except (TypeError, SyntaxError) as error:
        raise ValueError(f"its type is unknown: {kind[:100]}") from error


class _Counted:
    """A named stream that counts what is read of it: members of an archive can't tell their place."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream = stream
        self.name = name
        self.taken = 0

    def read(self, size: int) -> bytes:
        """As the stream's."""
        data = self._stream.read(size)
        self.taken += len(data)
        return data
