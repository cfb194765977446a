"""Which rows of a data set train and which validate: the rule of docs/page-protocol.md, as browser_runtime/train/split.js has it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from texelgrad.rng import RandomStream, Stream
from texelgrad.spec_data import Validation

Rows = NDArray[np.int64]


def split_rows(rows: int, validation: Validation) -> tuple[int, int]:
    """How many of so many rows train, and how many validate; below 0 or above `rows` where that can't be."""
    if validation.rows is None:
        kept = math.floor(rows * validation.fraction)
    else:
        kept = sum(stop - first for first, stop in validation.ranges())
    return rows - kept, kept


def split(
    validation: Validation, seed: int, rows: int, classes: NDArray[np.integer] | None = None
) -> tuple[Rows, Rows]:
    """The rows that train and those that validate, each in the order in which the engine takes them.

    Args:
        validation: of a spec that fits the data.
        seed: `train.seed`.
        rows: of the data set.
        classes: [rows], needed for a stratified split only; see classes_of.
    """
    train, kept = split_rows(rows, validation)
    if validation.rows is not None:
        validates = np.zeros(rows, np.bool_)
        for first, stop in validation.ranges():
            validates[first:stop] = True
        return np.flatnonzero(~validates), np.flatnonzero(validates)
    if validation.fraction == 0:
        return np.arange(rows), np.arange(0)
    order = RandomStream(seed, Stream.SPLIT).permutation(rows)
    if not validation.stratify:
        return order[:train], order[train:]
    if classes is None:
        raise ValueError("a stratified split needs the class of each row")
    # Class by class, every rows / kept th row: each class gives its share, rounded down or up, and all together `kept`.
    places = np.argsort(classes[order], kind="stable")
    steps = np.arange(rows + 1, dtype=np.int64) * kept // rows
    validates = np.zeros(rows, np.bool_)
    validates[places] = np.diff(steps) > 0
    return order[~validates], order[validates]


def classes_of(targets: NDArray[np.generic]) -> NDArray[np.int64]:
    """The class of each row: class numbers [rows] or [rows, 1], or the first largest of a row's probabilities."""
    columns = targets.reshape(len(targets), -1)
    return columns[:, 0].astype(np.int64) if columns.shape[1] == 1 else columns.argmax(axis=1)
