"""Storing a data set, and reading rows of it: its arrays as artifacts, then its row; the same content of one owner is stored once.

Where what is stored is damaged, the same content repairs it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from texelgrad import artifacts
from texelgrad.datasets import NamedArray, content_hash
from texelgrad.db import Database
from texelgrad.models import DatasetArray
from texelgrad.quota import UNLIMITED, Quota, check_bytes
from texelgrad.repository import datasets as repository

_log = logging.getLogger(__name__)
_SHOWN_VALUES = 100_000  # of one array


def store_dataset(
    db: Database,
    owner_id: str,
    name: str,
    arrays: list[NamedArray],
    quota: Quota = UNLIMITED,
    dataset_id: str | None = None,
) -> tuple[str, bool]:
    """Store the arrays; answers the data set's id (`dataset_id` if it is new and that is given), and whether it is new.

    Raises TooMany.
    """
    sha256 = content_hash(arrays)
    with db.read() as session:
        same = repository.find_same(session, owner_id, sha256)
    if same:
        _repair(db, same, arrays)
        return same, False
    size = sum(array.rows.nbytes for array in arrays)
    with db.write() as session:
        check_bytes(session, owner_id, quota, size)  # before the bytes are written for nothing
    stored = [
        (array.name, array.role, array.info, artifacts.write_pieces(db, owner_id, "dataset", array.pieces()))
        for array in arrays
    ]
    try:
        with db.write() as session:
            check_bytes(session, owner_id, quota, size)
            return repository.create_dataset(session, owner_id, name, sha256, stored, dataset_id).id, True
    except IntegrityError:  # the same content came in twice at once; the keeper removes our copy
        with db.read() as session:
            if same := repository.find_same(session, owner_id, sha256):
                return same, False
        raise


def _repair(db: Database, dataset_id: str, arrays: list[NamedArray]) -> None:
    """Put back the arrays that are no longer what was stored, from the same ones."""
    with db.read() as session:
        damaged = {
            array.name: array.artifact_id
            for array in repository.arrays_of(session, dataset_id)
            if not artifacts.is_intact(session, array.artifact_id)
        }
    for array in arrays:
        if array.name in damaged:
            artifacts.repair(db, damaged[array.name], array.pieces())
            _log.warning("data set %s: %s was damaged, and is repaired", dataset_id, array.name)


def read_rows(
    session: Session, arrays: Sequence[DatasetArray], offset: int, limit: int
) -> list[dict[str, Any]]:
    """At most `limit` rows from `offset` on, by array; fewer where their values would fill an answer."""
    columns: dict[str, list[Any]] = {}
    for array in arrays:
        width = math.prod(array.shape[1:])
        count = min(limit, max(0, array.shape[0] - offset), max(1, _SHOWN_VALUES // width))
        begin = 4 * width * min(offset, array.shape[0])
        pieces = artifacts.open_range(session, array.artifact_id, begin, begin + 4 * width * count)
        values = np.frombuffer(b"".join(pieces), "<i4" if array.dtype == "int32" else "<f4")
        columns[array.name] = values.reshape(count, *array.shape[1:]).tolist()
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=False)]
