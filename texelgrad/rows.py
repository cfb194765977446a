"""An array that is read block by block, so that one of gigabytes takes megabytes: in memory, or in a file."""

from __future__ import annotations

import math
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
BLOCK_BYTES = 4 << 20  # of a block of rows; one row may be larger
_MEMORY_BYTES = 8 << 20  # of what is written here; more goes to a temporary file


class Rows(ABC):
    """Rows of numbers, in order, as often as they are wanted."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]  # rows first

    @abstractmethod
    def blocks(self) -> Iterator[Array]:
        """The rows [count, ...], all of them one after another, each block valid until the next."""

    def read(self) -> Array:
        """All rows at once; for those that are known to be few."""
        blocks = list(self.blocks())
        return np.concatenate(blocks) if blocks else np.empty(self.shape, self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of all the values."""
        return math.prod(self.shape) * self.dtype.itemsize

    def rows_of_a_block(self) -> int:
        """How many rows a block has, all but the last."""
        return max(1, BLOCK_BYTES // max(1, math.prod(self.shape[1:]) * self.dtype.itemsize))


class ArrayRows(Rows):
    """An array in memory."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.dtype, self.shape = array.dtype, array.shape

    def blocks(self) -> Iterator[Array]:
        """As the base class has it; not copied."""
        if self.array.ndim == 0:
            yield self.array
            return
        step = self.rows_of_a_block()
        for start in range(0, len(self.array), step):
            yield self.array[start : start + step]


class FileRows(Rows):
    """Values in C order in a file that stays open, from `start` on."""

    def __init__(
        self, file: IO[bytes], start: int, dtype: np.dtype[Any], shape: tuple[int, ...], owner: object = None
    ) -> None:
        self.file, self.start = file, start
        self.owner = owner  # kept alive: it closes the file at its end
        self.dtype, self.shape = dtype, shape

    def blocks(self) -> Iterator[Array]:
        """As the base class has it; raises EOFError where the file is too short."""
        count = self.shape[0] if self.shape else 1
        row = math.prod(self.shape[1:])
        step = self.rows_of_a_block()
        for first in range(0, count, step):
            some = min(step, count - first)
            self.file.seek(self.start + first * row * self.dtype.itemsize)
            size = some * row * self.dtype.itemsize
            data = self.file.read(size)
            if len(data) != size:
                raise EOFError(f"the file ends within row {first + len(data) // max(1, size // some)}")
            yield np.frombuffer(data, self.dtype).reshape((some, *self.shape[1:]) if self.shape else ())


@dataclass(frozen=True)
class Changed(Rows):
    """Other rows with another type, or other axes behind the first; changed as they are read."""

    rows: Rows
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def blocks(self) -> Iterator[Array]:
        """As the base class has it."""
        for block in self.rows.blocks():
            shaped = block.reshape(len(block), *self.shape[1:])
            yield np.ascontiguousarray(shaped.astype(self.dtype, copy=False))


@dataclass(frozen=True)
class Upload:
    """What an uploaded file holds, not checked yet: inputs, and where they are there targets and weights of rows."""

    x: Rows | Array
    y: Rows | Array | None = None
    w: Rows | Array | None = None
    classes: list[str] | None = None  # names of the classes that y numbers
    columns: list[str] | None = None  # of x, by name: a table's


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are no inputs; None: none."""

    target: str | None = None
    weight: str | None = None

    def named(self) -> dict[str, str]:
        """The columns' names by the field that names them."""
        return {field: name for field, name in vars(self).items() if name is not None}


class Spool:
    """Values on their way to becoming Rows: appended one after another, in memory while they are few, then in a file."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.count = 0  # of values so far
        self._file = cast("IO[bytes]", tempfile.SpooledTemporaryFile(_MEMORY_BYTES))  # noqa: SIM115 - closed below
        weakref.finalize(self, self._file.close)

    def append(self, values: Array) -> None:
        """Append values, converted to this type."""
        with np.errstate(invalid="ignore"):  # a signalling NaN stays one until somebody refuses it
            converted = np.ascontiguousarray(values, self.dtype)
        self.append_bytes(converted.reshape(-1).view(np.uint8).data)
        self.count += values.size

    def append_bytes(self, data: bytes | memoryview) -> None:
        """Append values as their bytes."""
        self._file.write(data)

    def rows(self, shape: tuple[int, ...]) -> FileRows:
        """What was appended, in this shape; it lives as long as they do."""
        return FileRows(self._file, 0, self.dtype, shape, self)
