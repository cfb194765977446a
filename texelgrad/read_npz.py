"""The arrays of an npz file that nobody trusts: sizes and headers are checked before anything is kept, nothing unpickled."""

from __future__ import annotations

import zipfile
from typing import IO

from texelgrad.errors import Fault, Invalid
from texelgrad.inputs import ARRAYS, check_names
from texelgrad.read_npy import Refused, copy_npy
from texelgrad.rows import Rows
from texelgrad.zips import UNREADABLE, is_plausible

_SUFFIX = ".npy"


def read_npz(file: IO[bytes], max_bytes: int) -> dict[str, Rows]:
    """The arrays of a data set by name; raises Invalid with every fault where the file is anything else."""
    try:
        archive = zipfile.ZipFile(file)
    except UNREADABLE as error:
        raise Invalid([Fault("file", f"is not an npz file: {error}", None, f"npz with {ARRAYS}")]) from error
    with archive:
        sizes = {item.filename: item.file_size for item in archive.infolist()}
        if len(archive.infolist()) != len(sizes) or not all(name.endswith(_SUFFIX) for name in sizes):
            raise Invalid([Fault("file", "has other files, or an array twice", sorted(sizes)[:20], ARRAYS)])
        check_names([name.removesuffix(_SUFFIX) for name in sizes])
        if not all(is_plausible(item) for item in archive.infolist()):
            raise Invalid(
                [Fault("file", "has a size that its packed bytes can't make", None, "npz by NumPy")]
            )
        if sum(sizes.values()) > max_bytes:
            legal = f"at most {max_bytes} bytes"
            raise Invalid([Fault("file", "is too large unpacked", sum(sizes.values()), legal)])
        arrays: dict[str, Rows] = {}
        faults: list[Fault] = []
        for member in sorted(sizes):
            name = member.removesuffix(_SUFFIX)
            try:
                arrays[name] = _read_member(archive, member, name)
            except Refused as refused:
                faults.append(refused.fault)
            except UNREADABLE as error:
                faults.append(Fault(name, f"can't be read: {error}", None, "an array saved by NumPy"))
    if faults:
        raise Invalid(faults)
    return arrays


def _read_member(archive: zipfile.ZipFile, member: str, name: str) -> Rows:
    """One array, of the size that header and archive agree on."""
    with archive.open(member) as stream:
        return copy_npy(stream, name, archive.getinfo(member).file_size)
