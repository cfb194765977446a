"""x, y and perhaps w of an npz file that nobody trusts: sizes and headers are checked before anything is kept, nothing unpickled."""

from __future__ import annotations

import zipfile
from typing import IO

from texelgrad.errors import Fault, Invalid
from texelgrad.read_npy import Refused, copy_npy
from texelgrad.rows import Rows
from texelgrad.zips import UNREADABLE, is_plausible

_MEMBERS = ("x.npy", "y.npy")
_WEIGHTS = "w.npy"


def read_npz(file: IO[bytes], max_bytes: int) -> tuple[Rows, Rows, Rows | None]:
    """The arrays `x` and `y`, and `w` where it is there; raises Invalid with every fault where the file is anything else."""
    try:
        archive = zipfile.ZipFile(file)
    except UNREADABLE as error:
        raise Invalid([Fault("file", f"is not an npz file: {error}", None, "npz with x and y")]) from error
    with archive:
        sizes = {item.filename: item.file_size for item in archive.infolist()}
        names = sorted(name.removesuffix(".npy") for name in sizes)
        if {*sizes} - {_WEIGHTS} != {*_MEMBERS} or len(archive.infolist()) != len(sizes):
            raise Invalid([Fault("file", "needs exactly the arrays x and y", names[:20], "x, y, perhaps w")])
        if not all(is_plausible(item) for item in archive.infolist()):
            raise Invalid(
                [Fault("file", "has a size that its packed bytes can't make", None, "npz by NumPy")]
            )
        if sum(sizes.values()) > max_bytes:
            legal = f"at most {max_bytes} bytes"
            raise Invalid([Fault("file", "is too large unpacked", sum(sizes.values()), legal)])
        arrays: list[Rows] = []
        faults: list[Fault] = []
        for member in (*_MEMBERS, *([_WEIGHTS] if _WEIGHTS in sizes else [])):
            try:
                arrays.append(_read_member(archive, member))
            except Refused as refused:
                faults.append(refused.fault)
            except UNREADABLE as error:
                faults.append(Fault(member[0], f"can't be read: {error}", None, "an array saved by NumPy"))
    if faults:
        raise Invalid(faults)
    x, y, *weights = arrays
    return x, y, weights[0] if weights else None


def _read_member(archive: zipfile.ZipFile, member: str) -> Rows:
    """One array, of the size that header and archive agree on."""
    with archive.open(member) as stream:
        return copy_npy(stream, member[0], archive.getinfo(member).file_size)
