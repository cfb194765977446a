"""Artifacts: chunks, hashes, ranges, and what is swept away."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest
from sqlalchemy import func, select, text, update

from texelgrad import artifacts
from texelgrad.datasets import normalise
from texelgrad.db import Database
from texelgrad.errors import Damaged, NotFound
from texelgrad.models import CHUNK_BYTES, Artifact, ArtifactChunk
from texelgrad.repository import datasets
from texelgrad.repository.sweep import sweep_artifacts
from texelgrad.store import store_dataset
from texelgrad.synthetic import two_class_points

from .steps import OWNER, claim, finish, queue_job, write_artifact

SIZES = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES + 17]


def count(db: Database, table: type[Artifact | ArtifactChunk]) -> int:
    """Rows of a table."""
    with db.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


@pytest.mark.parametrize("size", SIZES)
def test_what_goes_in_comes_out(db: Database, size: int):
    """Bytes, size, hash and number of chunks, whatever pieces they were appended in."""
    data = random.Random(size).randbytes(size)
    writer = artifacts.open_writer(db, OWNER, None, None, "dataset")
    for start in range(0, size, 700_001):
        writer.append(data[start : start + 700_001])
    artifact_id = writer.commit()
    with db.read() as session:
        artifact = session.get_one(Artifact, artifact_id)
        assert (artifact.size, artifact.state) == (size, "ready")
        assert artifact.sha256 == hashlib.sha256(data).hexdigest()
        assert artifacts.read_all(session, artifact_id) == data
    assert count(db, ArtifactChunk) == -(-size // CHUNK_BYTES)


def test_ranges(db: Database):
    """Every range around the borders of chunks, and those that are none."""
    size = 2 * CHUNK_BYTES + 100
    data = random.Random(1).randbytes(size)
    artifact_id = artifacts.write_pieces(db, OWNER, "dataset", [data])
    places = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, size - 1, size]
    with db.read() as session:
        for start in places:
            for end in places:
                if start <= end:
                    assert b"".join(artifacts.open_range(session, artifact_id, start, end)) == data[start:end]
                else:
                    with pytest.raises(ValueError, match="range"):
                        artifacts.open_range(session, artifact_id, start, end)
        for start, end in ((-1, 5), (0, size + 1)):
            with pytest.raises(ValueError, match="range"):
                artifacts.open_range(session, artifact_id, start, end)
        with pytest.raises(NotFound):
            artifacts.open_range(session, "art_nothing")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("UPDATE artifact_chunk SET data = substr(data, 1, length(data) / 2)", "its chunk 1 has 50 bytes of 100"),
        ("DELETE FROM artifact_chunk WHERE seq = 1", "its chunk 1 is missing"),
    ],
)  # fmt: skip
def test_a_chunk_that_is_not_whole_is_told(db: Database, damage: str, told: str):
    """Reading ends with an error; what is not there gave no bytes, again and again."""
    artifact_id = artifacts.write_pieces(db, OWNER, "dataset", [bytes(CHUNK_BYTES + 100)])
    with db.write() as session:
        session.execute(text(damage))
    with db.read() as session, pytest.raises(Damaged, match=told):
        next(artifacts.open_range(session, artifact_id, CHUNK_BYTES + 60))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE artifact_chunk SET data = (SELECT data FROM artifact_chunk WHERE seq = 0) WHERE seq = 1",
        "UPDATE artifact_chunk SET data = substr(data, 1, length(data) / 2)",
        "DELETE FROM artifact_chunk WHERE seq = 1",
        "INSERT INTO artifact_chunk SELECT artifact_id, 9, data FROM artifact_chunk WHERE seq = 1",
        "UPDATE artifact SET size = size + 1, sha256 = 'none'",
    ],
)
def test_the_same_content_repairs_a_damaged_data_set(
    db: Database, damage: str, caplog: pytest.LogCaptureFixture
):
    """Under the same id and in the same files, whatever is wrong with their chunks; one that is intact is left alone."""
    arrays = normalise(np.arange(CHUNK_BYTES * 5 // 8, dtype=np.float32).reshape(-1, 2))  # 2.5 chunks
    dataset_id, _ = store_dataset(db, OWNER, "points", arrays)
    assert store_dataset(db, OWNER, "again", arrays) == (dataset_id, False)
    assert not caplog.records
    with db.write() as session:
        session.execute(text(damage))
    with db.read() as session:
        (array,) = datasets.arrays_of(session, dataset_id)
    assert store_dataset(db, OWNER, "again", arrays) == (dataset_id, False)
    assert [record.message for record in caplog.records] == [
        f"data set {dataset_id}: x was damaged, and is repaired"
    ]
    with db.read() as session:
        assert artifacts.is_intact(session, array.artifact_id)
        assert artifacts.read_all(session, array.artifact_id) == arrays[0].data.tobytes()
    assert count(db, Artifact) == 1


def test_the_sweep_takes_only_what_is_dead(db: Database):
    """Staged pieces of ended attempts and forgotten uploads go, a few chunks at a time; all else stays."""
    queue_job(db)
    lost = claim(db)
    write_artifact(db, lost, "weights", bytes(3 * CHUNK_BYTES))
    kept = [write_artifact(db, lost, "checkpoint", b"c", step=1)]
    finish(db, lost, "lost", "runner_died")
    live = claim(db)
    kept.append(write_artifact(db, live, "weights", b"w"))
    dataset_id, _ = store_dataset(db, OWNER, "points", normalise(*two_class_points(10, 0)))
    with db.read() as session:
        kept += [array.artifact_id for array in datasets.arrays_of(session, dataset_id)]
    forgotten = artifacts.write_pieces(db, OWNER, "dataset", [b"forgotten"])
    with db.write() as session:
        session.execute(update(Artifact).values(created_at=Artifact.created_at - 3_700_000_000))
    kept.append(artifacts.write_pieces(db, OWNER, "dataset", [b"an upload that is going on"]))

    before = count(db, ArtifactChunk)
    swept: list[int] = []
    while True:
        with db.write() as session:
            swept.append(sweep_artifacts(session, 2))
        if not swept[-1]:
            break
    assert max(swept) == 2
    assert before - count(db, ArtifactChunk) == sum(swept) == 4
    with db.read() as session:
        left = set(session.scalars(select(Artifact.id)))
    db.release_pages(10_000)
    with db.read() as session:
        if db.is_sqlite:
            assert session.scalar(text("PRAGMA freelist_count")) == 0
    assert left == set(kept)
    assert forgotten not in left
