"""The arrays of a safetensors file that nobody trusts: its header is limited, and its offsets must fit its shapes."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import IO, Any, cast

import numpy as np

from texelgrad.errors import Fault, Invalid
from texelgrad.inputs import ARRAYS, check_names
from texelgrad.read_npy import Refused
from texelgrad.rows import FileRows, Rows

_MAX_HEADER = 1 << 20  # bytes
_DTYPES: Mapping[str, str] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1", "BOOL": "?",
}  # fmt: skip
_MAX_AXES = 8


def read_safetensors(file: IO[bytes], max_bytes: int) -> dict[str, Rows]:
    """The arrays of a data set by name, of a file that stays open; raises Invalid with every fault where the file is anything else."""
    header, start = _header(file)
    tensors = {name: value for name, value in header.items() if name != "__metadata__"}
    check_names([*tensors])
    faults: list[Fault] = []
    places: dict[str, tuple[int, int, tuple[int, ...], np.dtype[Any]]] = {}
    for name, entry in sorted(tensors.items()):
        try:
            places[name] = _place(name, entry)
        except Refused as refused:
            faults.append(refused.fault)
    if faults:
        raise Invalid(faults)
    total = sum(end - begin for begin, end, _, _ in places.values())
    if total > max_bytes:
        raise Invalid([Fault("file", "is too large", total, f"at most {max_bytes} bytes")])
    ordered = sorted((begin, end) for begin, end, _, _ in places.values())
    if [begin for begin, _ in ordered] != [0, *(end for _, end in ordered[:-1])]:
        raise _not_one("has tensors that overlap, or gaps between them", None)
    file.seek(0, 2)
    if file.tell() - start != total:
        raise _not_one(f"has {file.tell() - start} bytes of tensors, its header says {total}", None)
    return {
        name: FileRows(file, start + begin, dtype, shape) for name, (begin, _, shape, dtype) in places.items()
    }


def _header(file: IO[bytes]) -> tuple[dict[str, Any], int]:
    """The header, and where the tensors begin."""
    try:
        (size,) = struct.unpack("<Q", file.read(8))
        if not 2 <= size <= _MAX_HEADER:
            raise _not_one(f"has a header of {size} bytes", None)
        text = file.read(size)
        if len(text) != size:
            raise _not_one("ends within its header", None)
        header = json.loads(text)
    except (struct.error, ValueError, RecursionError) as error:
        raise _not_one(f"has no header: {error}", None) from error
    if not isinstance(header, dict):
        raise _not_one("has a header that is no object", None)
    return cast(dict[str, Any], header), 8 + size


def _place(name: str, entry: Any) -> tuple[int, int, tuple[int, ...], np.dtype[Any]]:
    """Where a tensor begins and ends, its shape and its type; raises Refused."""
    fields = cast(dict[str, Any], entry) if isinstance(entry, dict) else {}
    kind, shape, offsets = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise Refused(Fault(name, "has a type that can't be used", str(kind)[:20], ", ".join(_DTYPES)))
    if not _whole_numbers(shape) or not _whole_numbers(offsets):
        raise Refused(Fault(name, "has no shape or no offsets", None, "whole numbers of at least 0"))
    axes, place = cast(list[int], shape), cast(list[int], offsets)
    dtype = np.dtype(_DTYPES[kind])
    if len(place) != 2 or len(axes) > _MAX_AXES:
        raise Refused(Fault(name, "has a shape or offsets of a wrong length", None, "two offsets"))
    size = math.prod(axes) * dtype.itemsize
    if place[1] - place[0] != size:
        message = f"says {axes} of {kind}, {size} bytes, but has {place[1] - place[0]}"
        raise Refused(Fault(name, message, place[1] - place[0], f"{size} bytes"))
    return place[0], place[1], tuple(axes), dtype


def _whole_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(
        type(item) is int and 0 <= item < 2**53 for item in cast(list[Any], value)
    )


def _not_one(message: str, value: Any) -> Invalid:
    return Invalid([Fault("file", message, value, f"safetensors with {ARRAYS}")])
