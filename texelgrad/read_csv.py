"""x and y of a CSV file: a header line, numbers below it, one named column of targets."""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections import Counter
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from texelgrad.errors import Fault, Invalid

_MAX_FAULTS = 20
_MAX_COLUMNS = 65_536


def read_csv(file: IO[bytes], target: str | None, max_bytes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """x float64 [n, columns - 1] and y float64 [n]; raises Invalid, with up to 20 faults by line and column."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        return _read(csv.reader(text, strict=True), target, max_bytes)
    except (UnicodeDecodeError, csv.Error) as error:
        raise Invalid(
            [Fault("file", f"is not a CSV file: {error}", None, "UTF-8 text, comma-separated")]
        ) from error
    finally:
        text.detach()  # the caller closes the file


def _read(rows: Any, target: str | None, max_bytes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    header: list[str] = [name.strip() for name in next(rows, [])]
    index = _target_index(header, target)
    cells = array("d")
    faults: list[Fault] = []
    for row in rows:
        if not row:  # a blank line
            continue
        if len(row) != len(header):
            message = f"has {len(row)} cells, the header {len(header)}"
            faults.append(Fault(f"line {rows.line_num}", message, len(row), f"{len(header)} cells"))
        else:
            for name, cell in zip(header, row, strict=True):
                number = _number(cell)
                if number is None:
                    field = f"line {rows.line_num}, column {name}"
                    faults.append(Fault(field, "is not a finite number", cell[:100], "a finite number"))
                else:
                    cells.append(number)
        if len(faults) >= _MAX_FAULTS:
            break
        if 8 * len(cells) > max_bytes:
            raise Invalid([Fault("file", "is too large unpacked", None, f"at most {max_bytes} bytes")])
    if faults:
        raise Invalid(faults[:_MAX_FAULTS])
    if not cells:
        raise Invalid([Fault("file", "has no rows below its header", 0, "at least one row")])
    table = np.frombuffer(cells, np.float64).reshape(-1, len(header))
    return np.delete(table, index, axis=1), table[:, index].copy()


def _target_index(header: list[str], target: str | None) -> int:
    """Where the targets stand; raises Invalid where the header is none or lacks them."""
    if not 2 <= len(header) <= _MAX_COLUMNS:
        legal = f"2 to {_MAX_COLUMNS} comma-separated names"
        raise Invalid([Fault("file", "has no usable header line", len(header), legal)])
    columns = ", ".join(header[:100])
    if twice := sorted(name for name, count in Counter(header).items() if count > 1)[:10]:
        raise Invalid([Fault("file", "names columns twice", twice, "a name of its own for each")])
    if target is None:
        raise Invalid([Fault("target", "is missing: which column has the targets?", None, columns)])
    if target not in header:
        raise Invalid([Fault("target", "is not a column of the file", target, columns)])
    return header.index(target)


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
