"""A CSV file: a header line, numbers below it; named columns of targets, which may be names of classes, and of weights."""

from __future__ import annotations

import csv
import io
import math
import shlex
from array import array
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from texelgrad.errors import Fault, Invalid
from texelgrad.rows import Columns, Spool, Upload
from texelgrad.spec_forms import is_label

_MAX_FAULTS = 20  # that are told; the rest is counted
_MAX_COLUMNS = 65_536
_MAX_CLASSES = 65_536  # names, each of which stays in memory
_SEPARATORS = ",;\t"

_MAX_CELLS = 1 << 19  # in memory


def read_csv(file: IO[bytes], columns: Columns, max_bytes: int) -> Upload:
    """x float64 [n, other columns]; y and w float64 [n], and the classes' names where the targets were names.

    Names become the numbers of their sorted order. Raises Invalid; of the cells' faults 20 are told and the rest counted.
    """
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        first = text.readline()
        rows = csv.reader(chain([first], text), delimiter=_separator(first), strict=True)
        return _read(rows, columns, max_bytes)
    except (UnicodeDecodeError, csv.Error) as error:
        legal = "UTF-8 text, separated by commas, semicolons or tabs"
        raise Invalid([Fault("file", f"is not a CSV file: {error}", None, legal)]) from error
    finally:
        text.detach()  # the caller closes the file


def _separator(header: str) -> str:
    """What stands most often in the header line; a comma where nothing does."""
    return max(_SEPARATORS, key=header.count)


def _read(rows: Any, columns: Columns, max_bytes: int) -> Upload:
    header: list[str] = [name.strip() for name in next(rows, [])]
    _check_header(header, columns)
    places = {header.index(name): field for field, name in columns.named().items()}
    x = Spool(np.float64)
    cells, weights = array("d"), array("d")  # cells: read, and not in x yet
    targets = _Targets(columns.target or "")
    faults = _Faults(header, columns.target)
    count = 0  # of rows
    for row in rows:
        if not row:  # a blank line
            continue
        if len(row) != len(header):
            message = f"has {len(row)} cells, the header {len(header)}"
            faults.add(Fault(f"line {rows.line_num}", message, len(row), f"{len(header)} cells"))
        else:
            for column, cell in enumerate(row):
                place = places.get(column)
                if place == "target":
                    faults.add(*targets.add(cell.strip(), rows.line_num))
                elif (number := _number(cell)) is None:
                    faults.add_cell(column, cell, rows.line_num)
                else:
                    (weights if place == "weight" else cells).append(number)
        count += 1
        if len(cells) >= _MAX_CELLS:
            x.append(np.frombuffer(cells, np.float64))
            cells = array("d")
        if 8 * (x.count + len(cells) + len(targets.values) + len(weights)) > max_bytes:
            raise Invalid([Fault("file", "is too large unpacked", None, f"at most {max_bytes} bytes")])
    faults.add(*targets.faults())
    faults.raise_any(count)
    if not count:
        raise Invalid(
            [
                Fault(
                    "file",
                    "is taken for CSV, and has no rows below its header",
                    0,
                    "a header line, and at least one row below it",
                )
            ]
        )
    x.append(np.frombuffer(cells, np.float64))
    y, classes = targets.made() if columns.target else (None, None)
    w = np.frombuffer(weights, np.float64) if columns.weight else None
    names = [name for column, name in enumerate(header) if column not in places]
    return Upload(x.rows((count, len(names))), y, w, classes, names)


class _Faults:
    """What is wrong with the lines: the first are kept, the rest is counted; of a column without a number it is told once."""

    def __init__(self, header: list[str], target: str | None) -> None:
        self._header, self._target = header, target
        self._kept: list[tuple[int | None, Fault]] = []  # with the column of a cell that is no number
        self._found = 0
        self._words: dict[int, tuple[int, str]] = {}  # by column: how many cells are no number, and the first

    def add(self, *faults: Fault, column: int | None = None) -> None:
        """Note what is wrong, of one cell of a column of numbers or of something else."""
        self._found += len(faults)
        self._kept += [(column, fault) for fault in faults[: _MAX_FAULTS - len(self._kept)]]

    def add_cell(self, column: int, cell: str, line: int) -> None:
        """Note a cell that is no number."""
        count, first = self._words.get(column, (0, cell[:100]))
        self._words[column] = count + 1, first
        legal = "" if self._target else "; names are for the column that target names"
        field = f"line {line}, column {self._header[column]}"
        self.add(Fault(field, "is not a finite number", cell[:100], f"a finite number{legal}"), column=column)

    def raise_any(self, rows: int) -> None:
        """Raises Invalid where there is a fault in these rows."""
        text = {column: first for column, (count, first) in self._words.items() if count == rows > 1}
        faults = [self._text_fault(column, first, rows) for column, first in text.items()]
        faults += [fault for column, fault in self._kept if column not in text]
        if faults:
            told = faults[:_MAX_FAULTS]
            raise Invalid(told, self._found - (rows - 1) * len(text) - len(told))

    def _text_fault(self, column: int, first: str, rows: int) -> Fault:
        name = self._header[column][:100]
        legal = "numbers; only the targets may be names of classes"
        if self._target is None:
            legal = f"numbers; or it has the targets: target={name} (texelgrad: --target {shlex.quote(name)})"
        return Fault(f"column {name}", f"has no finite number in any of its {rows} rows", first, legal)


class _Targets:
    """The column of the targets: numbers, or names of classes, which are numbered as they come until all are known."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._names: dict[str, tuple[int, int]] = {}  # name -> number, and the line where it stands first
        self._numbers = 0
        self.values = array("d")

    def add(self, cell: str, line: int) -> list[Fault]:
        """Take the next row's cell; answers what is wrong with it."""
        number = _parsed(cell)
        field = f"line {line}, column {self._column}"
        if not cell or (number is not None and not math.isfinite(number)):
            message = "is empty" if not cell else "is not a finite number"
            return [Fault(field, message, cell[:100], "a finite number, or the name of a class")]
        if number is not None:
            self._numbers += 1
        elif not is_label(cell):
            legal = "up to 200 characters, no control characters"
            return [Fault(field, "is a name that can't be shown", cell[:100], legal)]
        elif cell not in self._names and len(self._names) >= _MAX_CLASSES:
            return [Fault(field, "is one name too many", cell[:100], f"at most {_MAX_CLASSES} classes")]
        else:
            number, _ = self._names.setdefault(cell, (len(self._names), line))
        self.values.append(number)
        return []

    def faults(self) -> list[Fault]:
        """Names among numbers: it can't be told whether they are classes or mistakes."""
        if not (self._numbers and self._names):
            return []
        legal = "numbers in all rows, or names in all"
        return [
            Fault(f"line {line}, column {self._column}", "is no number, as others are", name[:100], legal)
            for name, (_, line) in self._names.items()
        ]

    def made(self) -> tuple[NDArray[Any], list[str] | None]:
        """The numbers, and the names by their number."""
        values = np.frombuffer(self.values, np.float64).copy()
        if not self._names:
            return values, None
        names = sorted(self._names)
        places = {name: place for place, name in enumerate(names)}
        order = np.array([places[name] for name in self._names], np.float64)
        return order[values.astype(np.int64)], names


def _check_header(header: list[str], columns: Columns) -> None:
    """Raises Invalid where the header is none, or lacks a column that was named."""
    faults: list[Fault] = []
    least = 1 + len(columns.named())
    if not header:
        faults.append(Fault("file", "is empty", None, "a line of column names, and rows of numbers below it"))
    elif not least <= len(header) <= _MAX_COLUMNS:
        legal = f"{least} to {_MAX_COLUMNS} names, separated by commas, semicolons or tabs"
        faults.append(Fault("file", "is taken for CSV, and has no usable header line", len(header), legal))
    elif all(_parsed(name) is not None for name in header):
        message = "has no header: its first line is of numbers"
        faults.append(Fault("file", message, ",".join(header)[:100], "a first line with the columns' names"))
    elif twice := sorted(name for name, count in Counter(header).items() if count > 1)[:10]:
        faults.append(Fault("file", "names columns twice", twice, "a name of its own for each"))
    else:
        faults.extend(column_faults(header, columns))
    if faults:
        raise Invalid(faults)


def column_faults(names: list[str], columns: Columns) -> Iterator[Fault]:
    """Whether the columns that were named are there, and two of them."""
    legal = ", ".join(names[:100]) + (f" and {len(names) - 100} more" if len(names) > 100 else "")
    for field, name in columns.named().items():
        if name not in names:
            yield Fault(field, "is not a column of the file", name, legal)
    if columns.target is not None and columns.target == columns.weight:
        yield Fault("weight", "is the column of the targets", columns.weight, "another column")


def _parsed(cell: str) -> float | None:
    if "_" in cell:  # Python reads 1_000 as 1000; in a table it is a name or a mistake
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def _number(cell: str) -> float | None:
    value = _parsed(cell)
    return value if value is not None and math.isfinite(value) else None
