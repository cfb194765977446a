"""Which format an upload has: by its name, its content type, or its first bytes."""

from __future__ import annotations

import codecs
import zipfile
from typing import IO

from texelgrad.errors import Fault, Invalid
from texelgrad.zips import UNREADABLE

FORMATS = ("npz", "npy", "csv", "parquet", "safetensors", "images")
_SUFFIXES = ("npz", "npy", "csv", "parquet", "safetensors")
_TYPES = {"text/csv": "csv", "application/vnd.apache.parquet": "parquet"}
_START = 4096  # bytes that tell


def format_of(file: IO[bytes], filename: str, content_type: str) -> str:
    """One of FORMATS; the file is left at its start. Raises Invalid where it is none of them."""
    suffix = filename.rpartition(".")[2].lower()
    if suffix in _SUFFIXES:
        return suffix
    if content_type in _TYPES:
        return _TYPES[content_type]
    start = file.read(_START)
    file.seek(0)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK"):
        return "npz" if _has_arrays(file) else "images"
    if start.startswith(b"\x93NUMPY"):
        return "npy"
    if start[6:9] == b"\0\0{":
        return "safetensors"
    if not _is_text(start):
        legal = "npz, npy, CSV in UTF-8, Parquet, safetensors, or a zip of PNG or JPEG images"
        raise Invalid([Fault("file", "is of no format that is known here", None, legal)])
    return "csv"


def _is_text(start: bytes) -> bool:
    """Whether a file may be UTF-8 text; the last character of its start may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return b"\0" not in start


def _has_arrays(file: IO[bytes]) -> bool:
    """Whether a zip file holds arrays rather than images; one that can't be read, or is empty, may be either."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except UNREADABLE:
        return True
    finally:
        file.seek(0)
    return not names or any(name.endswith(".npy") for name in names)
