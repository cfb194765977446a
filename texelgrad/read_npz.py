"""x, perhaps y and w, of an npz file that nobody trusts: sizes and headers are checked before anything is kept, nothing unpickled."""

from __future__ import annotations

import zipfile
from typing import IO

from texelgrad.errors import Fault, Invalid
from texelgrad.read_npy import Refused, copy_npy
from texelgrad.rows import Rows
from texelgrad.zips import UNREADABLE, is_plausible

_MEMBERS = ("x.npy", "y.npy", "w.npy")
_LEGAL = "x, perhaps y, perhaps w"


def read_npz(file: IO[bytes], max_bytes: int) -> dict[str, Rows]:
    """The array `x`, and `y` and `w` where they are there; raises Invalid with every fault where the file is anything else."""
    try:
        archive = zipfile.ZipFile(file)
    except UNREADABLE as error:
        raise Invalid([Fault("file", f"is not an npz file: {error}", None, f"npz with {_LEGAL}")]) from error
    with archive:
        sizes = {item.filename: item.file_size for item in archive.infolist()}
        names = sorted(name.removesuffix(".npy") for name in sizes)
        odd = {*sizes} - {*_MEMBERS}
        if odd or _MEMBERS[0] not in sizes or len(archive.infolist()) != len(sizes):
            raise Invalid([Fault("file", "has other arrays, or one twice", names[:20], _LEGAL)])
        if not all(is_plausible(item) for item in archive.infolist()):
            raise Invalid(
                [Fault("file", "has a size that its packed bytes can't make", None, "npz by NumPy")]
            )
        if sum(sizes.values()) > max_bytes:
            legal = f"at most {max_bytes} bytes"
            raise Invalid([Fault("file", "is too large unpacked", sum(sizes.values()), legal)])
        arrays: dict[str, Rows] = {}
        faults: list[Fault] = []
        for member in (member for member in _MEMBERS if member in sizes):
            try:
                arrays[member[0]] = _read_member(archive, member)
            except Refused as refused:
                faults.append(refused.fault)
            except UNREADABLE as error:
                faults.append(Fault(member[0], f"can't be read: {error}", None, "an array saved by NumPy"))
    if faults:
        raise Invalid(faults)
    return arrays


def _read_member(archive: zipfile.ZipFile, member: str) -> Rows:
    """One array, of the size that header and archive agree on."""
    with archive.open(member) as stream:
        return copy_npy(stream, member[0], archive.getinfo(member).file_size)
