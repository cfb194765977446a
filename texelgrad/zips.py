"""What a zip file that nobody trusts may do: how reading it can fail, and how much can come out of it."""

from __future__ import annotations

import zipfile
import zlib

_MAX_RATIO = 1032  # of deflate

UNREADABLE = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, RuntimeError)
"""What zipfile raises on opening and on reading; RuntimeError where it is encrypted or has what Python lacks."""


def is_plausible(item: zipfile.ZipInfo) -> bool:
    """Whether so many bytes can come out: a tiny file must not make us reserve all that the limit allows."""
    if item.compress_type == zipfile.ZIP_STORED:
        return item.file_size == item.compress_size
    return item.compress_type == zipfile.ZIP_DEFLATED and item.file_size <= _MAX_RATIO * item.compress_size
