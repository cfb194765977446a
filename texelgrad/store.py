"""Storing a data set: its arrays as artifacts, then its row; the same content of one owner is stored once."""

from __future__ import annotations

from sqlalchemy.exc import IntegrityError

from texelgrad import artifacts
from texelgrad.datasets import NamedArray, content_hash
from texelgrad.db import Database
from texelgrad.quota import UNLIMITED, Quota, check_bytes
from texelgrad.repository import datasets as repository


def store_dataset(
    db: Database, owner_id: str, name: str, arrays: list[NamedArray], quota: Quota = UNLIMITED
) -> tuple[str, bool]:
    """Store the arrays; answers the data set's id, and whether it is new. Raises TooMany."""
    sha256 = content_hash(arrays)
    with db.read() as session:
        if same := repository.find_same(session, owner_id, sha256):
            return same.id, False
    size = sum(array.data.nbytes for array in arrays)
    with db.write() as session:
        check_bytes(session, owner_id, quota, size)  # before the bytes are written for nothing
    stored = [
        (array.name, array.role, array.info, artifacts.write_bytes(db, owner_id, "dataset", array.view()))
        for array in arrays
    ]
    try:
        with db.write() as session:
            check_bytes(session, owner_id, quota, size)
            return repository.create_dataset(session, owner_id, name, sha256, stored).id, True
    except IntegrityError:  # the same content came in twice at once; the keeper removes our copy
        with db.read() as session:
            if same := repository.find_same(session, owner_id, sha256):
                return same.id, False
        raise
