"""x and y of an npz file that nobody trusts: sizes and headers are checked before memory is taken, nothing unpickled."""

from __future__ import annotations

import math
import zipfile
import zlib
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from texelgrad.errors import Fault, Invalid

_MEMBERS = ("x.npy", "y.npy")
_MAX_HEADER = 10_000  # bytes
_MAX_RATIO = 1032  # of deflate
_BLOCK = 1 << 20  # bytes read at once

# RuntimeError: encrypted; NotImplementedError: a compression that Python lacks
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    ValueError,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
)


def read_npz(file: IO[bytes], max_bytes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The arrays `x` and `y`; raises Invalid with every fault where the file is anything else."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise Invalid([Fault("file", f"is not an npz file: {error}", None, "npz with x and y")]) from error
    with archive:
        sizes = {item.filename: item.file_size for item in archive.infolist()}
        names = sorted(name.removesuffix(".npy") for name in sizes)
        if sorted(sizes) != sorted(_MEMBERS) or len(archive.infolist()) != len(_MEMBERS):
            raise Invalid([Fault("file", "needs exactly the arrays x and y", names[:20], "x, y")])
        if not all(_is_plausible(item) for item in archive.infolist()):
            raise Invalid(
                [Fault("file", "has a size that its packed bytes can't make", None, "npz by NumPy")]
            )
        if sum(sizes.values()) > max_bytes:
            legal = f"at most {max_bytes} bytes"
            raise Invalid([Fault("file", "is too large unpacked", sum(sizes.values()), legal)])
        arrays: list[NDArray[Any]] = []
        faults: list[Fault] = []
        for member in _MEMBERS:
            try:
                arrays.append(_read_member(archive, member))
            except _Refused as refused:
                faults.append(refused.fault)
            except _UNREADABLE as error:
                faults.append(Fault(member[0], f"can't be read: {error}", None, "an array saved by NumPy"))
    if faults:
        raise Invalid(faults)
    return arrays[0], arrays[1]


def _is_plausible(item: zipfile.ZipInfo) -> bool:
    """Whether so many bytes can come out: a tiny file must not make us reserve all that the limit allows."""
    if item.compress_type == zipfile.ZIP_STORED:
        return item.file_size == item.compress_size
    return item.compress_type == zipfile.ZIP_DEFLATED and item.file_size <= _MAX_RATIO * item.compress_size


class _Refused(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def _read_member(archive: zipfile.ZipFile, member: str) -> NDArray[Any]:
    """One array, read into memory of the size that header and archive agree on."""
    name = member[0]
    with archive.open(member) as stream:
        shape, fortran, dtype = _read_header(stream)
        if dtype.hasobject or dtype.kind not in "biuf" or dtype.names is not None:
            raise _Refused(Fault(name, "is not of numbers", str(dtype), "float, integer or boolean"))
        if any(axis < 0 for axis in shape):
            raise _Refused(Fault(name, "has a negative axis", list(shape), "lengths of at least 0"))
        size = math.prod(shape) * dtype.itemsize
        packed = archive.getinfo(member).file_size - stream.tell()
        if size != packed:
            message = f"says {list(shape)} of {dtype}, {size} bytes, but has {packed}"
            raise _Refused(Fault(name, message, packed, f"{size} bytes"))
        buffer = bytearray(size)
        view, filled = memoryview(buffer), 0
        while filled < size:
            block = stream.read(min(_BLOCK, size - filled))
            if not block:
                raise _Refused(Fault(name, "ends too early", filled, f"{size} bytes"))
            view[filled : filled + len(block)] = block
            filled += len(block)
        if stream.read(1):  # also makes zipfile compare the checksum
            raise _Refused(Fault(name, "goes on after its end", None, f"{size} bytes"))
    return np.frombuffer(buffer, dtype).reshape(shape, order="F" if fortran else "C")


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether in Fortran order, and dtype; raises ValueError."""
    version = npy_format.read_magic(stream)
    if version == (1, 0):
        return npy_format.read_array_header_1_0(stream, max_header_size=_MAX_HEADER)
    if version in ((2, 0), (3, 0)):
        return npy_format.read_array_header_2_0(stream, max_header_size=_MAX_HEADER)
    raise ValueError(f"npy version {version} is unknown")
