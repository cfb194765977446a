"""Which format an upload has: by its name, its content type, or its first bytes."""

from __future__ import annotations

import zipfile
from typing import IO

from texelgrad.zips import UNREADABLE

FORMATS = ("npz", "csv", "parquet", "safetensors", "images")
_SUFFIXES = {"npz": "npz", "csv": "csv", "parquet": "parquet", "safetensors": "safetensors"}
_TYPES = {"text/csv": "csv", "application/vnd.apache.parquet": "parquet"}


def format_of(file: IO[bytes], filename: str, content_type: str) -> str:
    """One of FORMATS; the file is left at its start."""
    suffix = filename.rpartition(".")[2].lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if content_type in _TYPES:
        return _TYPES[content_type]
    start = file.read(9)
    file.seek(0)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK"):
        return "npz" if _has_arrays(file) else "images"
    if len(start) == 9 and start[8:] == b"{" and start[6:8] == b"\0\0":
        return "safetensors"
    return "csv"


def _has_arrays(file: IO[bytes]) -> bool:
    """Whether a zip file holds arrays rather than images; one that can't be read may be either."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except UNREADABLE:
        return True
    finally:
        file.seek(0)
    return any(name.endswith(".npy") for name in names)
