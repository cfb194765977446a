"""Normalisation of inputs: fitted once on the training rows, stored with the job, applied to all that the page reads.

Each feature, or each channel of images (the last axis), has its own offset and scale: x' = (x - offset) * scale in
float64, rounded once to float32. What does not vary keeps the scale 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from texelgrad.rng import RandomStream, Stream
from texelgrad.shapes import split_rows

Floats = NDArray[np.float64]
_ITEM = 4  # bytes of a float32
NONE, STANDARD, MINMAX = "none", "standard", "minmax"


def training_rows(seed: int, fraction: float, rows: int) -> NDArray[np.bool_]:
    """Which rows train: all but the end of the seeded permutation, exactly as the page splits them."""
    trains = np.ones(rows, np.bool_)
    train_count, _ = split_rows(rows, fraction)
    if fraction > 0:
        trains[RandomStream(seed, Stream.SPLIT).permutation(rows)[train_count:]] = False
    return trains


def fit(
    kind: str, blocks: Callable[[], Iterable[bytes]], shape: tuple[int, ...], trains: NDArray[np.bool_]
) -> dict[str, Any]:
    """Offset and scale of each feature or channel, from the rows that train.

    Args:
        kind: standard (mean 0, deviation 1) or minmax (0 to 1).
        blocks: reads the array's float32 bytes from the start, in pieces of any length; called twice for standard.
        shape: of the array, rows first.
        trains: which rows count.
    """
    columns = shape[-1] if len(shape) > 1 else 1
    if kind == MINMAX:
        low, high = np.full(columns, np.inf), np.full(columns, -np.inf)
        for values in _training_values(blocks(), shape, columns, trains):
            low, high = np.minimum(low, values.min(axis=0)), np.maximum(high, values.max(axis=0))
        offset, spread = low, high - low
    else:
        total, count = np.zeros(columns), 0
        for values in _training_values(blocks(), shape, columns, trains):
            total += values.sum(axis=0)
            count += len(values)
        offset = total / count
        squares = np.zeros(columns)
        for values in _training_values(blocks(), shape, columns, trains):
            squares += np.square(values - offset).sum(axis=0)
        spread = np.sqrt(squares / count)
    # Below this a spread is rounding: its inverse would blow noise up to the size of the data.
    varies = spread > np.finfo(np.float32).eps * np.maximum(np.abs(offset), np.finfo(np.float32).tiny)
    scale = np.where(varies, 1 / np.where(varies, spread, 1.0), 1.0)
    return {"kind": kind, "offset": offset.tolist(), "scale": scale.tolist()}


def read_normalized(
    read: Callable[[int, int], Iterator[bytes]], normalization: dict[str, Any], start: int, end: int
) -> Iterator[bytes]:
    """Bytes [start, end) of an array as it is after normalisation; `read` gives such ranges of what is stored."""
    offset, scale = (np.array(normalization[name], np.float64) for name in ("offset", "scale"))
    first, last = start // _ITEM * _ITEM, -(-end // _ITEM) * _ITEM
    at = first
    for values in _whole_values(read(first, last)):
        column = np.arange(at // _ITEM, at // _ITEM + len(values)) % len(offset)
        applied = ((values.astype(np.float64) - offset[column]) * scale[column]).astype("<f4").tobytes()
        yield applied[max(0, start - at) : max(0, end - at)]
        at += len(applied)


def _training_values(
    blocks: Iterable[bytes], shape: tuple[int, ...], columns: int, trains: NDArray[np.bool_]
) -> Iterator[Floats]:
    """Float64 [n, columns] of the rows that train, block by block."""
    width = math.prod(shape[1:])
    rest = np.empty(0, np.float32)
    row = 0
    for values in _whole_values(blocks):
        rest = np.concatenate([rest, values])
        count = len(rest) // width
        block = rest[: count * width].reshape(count, width // columns, columns)[trains[row : row + count]]
        rest, row = rest[count * width :], row + count
        if block.size:
            yield block.reshape(-1, columns).astype(np.float64)


def _whole_values(pieces: Iterable[bytes]) -> Iterator[NDArray[np.float32]]:
    """Pieces of any length as float32 values."""
    rest = b""
    for piece in pieces:
        data = rest + piece
        whole = len(data) // _ITEM * _ITEM
        rest = data[whole:]
        if whole:
            yield np.frombuffer(data[:whole], "<f4")
