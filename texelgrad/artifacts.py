"""Files as chunked, hashed rows of the database, behind append/commit for writers and ranges for readers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from texelgrad.db import Database, now_us
from texelgrad.domain import IdPrefix, new_id
from texelgrad.errors import Damaged, NotFound
from texelgrad.models import CHUNK_BYTES, RESULTS, Artifact, ArtifactChunk
from texelgrad.repository.locks import lock_attempt


class Writer:
    """Writes one artifact in short transactions, each of which checks the attempt's token.

    After each it pauses as long as it took, so that others get their turn on a database with one writer.
    """

    def __init__(
        self,
        db: Database,
        owner_id: str,
        attempt_id: str | None,
        token: str | None,
        kind: str,
        step: int | None,
    ) -> None:
        self._db = db
        self._attempt_id, self._token = attempt_id, token
        self._kind = kind
        self._hash = hashlib.sha256()
        self._buffer = bytearray()
        self._chunks = 0
        self.size = 0  # in bytes, appended so far
        self.artifact_id = new_id(IdPrefix.ARTIFACT)
        with db.write() as session:
            self._fence(session)
            session.add(
                Artifact(
                    id=self.artifact_id,
                    owner_id=owner_id,
                    attempt_id=attempt_id,
                    kind=kind,
                    step=step,
                    size=0,
                    chunk_size=CHUNK_BYTES,
                    state="staged",
                    created_at=now_us(session),
                )
            )

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes; full chunks are written. Raises Fenced."""
        self._hash.update(data)
        self.size += len(data)
        left = memoryview(data)
        while left:
            taken = CHUNK_BYTES - len(self._buffer)
            self._buffer += left[:taken]
            left = left[taken:]
            if len(self._buffer) < CHUNK_BYTES:
                break
            chunk = bytes(self._buffer)
            self._buffer.clear()
            started = time.monotonic()
            with self._db.write() as session:
                self._write_chunk(session, chunk)
            time.sleep(time.monotonic() - started)

    def commit(self) -> str:
        """Write the rest and the hash; answers the artifact's id. Raises Fenced.

        Weights and predictions stay staged until their attempt succeeds (repository.finish_attempt); all else can be read at once.
        """
        with self._db.write() as session:
            if self._buffer:
                self._write_chunk(session, bytes(self._buffer))
                self._buffer.clear()
            else:
                self._fence(session)
            artifact = session.get_one(Artifact, self.artifact_id)
            artifact.size = self.size
            artifact.sha256 = self._hash.hexdigest()
            artifact.state = "staged" if self._kind in RESULTS else "ready"
        return self.artifact_id

    def _write_chunk(self, session: Session, chunk: bytes) -> None:
        self._fence(session)
        session.add(ArtifactChunk(artifact_id=self.artifact_id, seq=self._chunks, data=chunk))
        session.flush()
        self._chunks += 1

    def _fence(self, session: Session) -> None:
        if self._attempt_id is not None:
            lock_attempt(session, self._attempt_id, self._token or "")


def open_writer(
    db: Database,
    owner_id: str,
    attempt_id: str | None,
    token: str | None,
    kind: str,
    step: int | None = None,
) -> Writer:
    """Start an artifact of `kind` weights, predictions, checkpoint (with its `step`), or of no attempt and no token: dataset, uploaded_weights."""
    return Writer(db, owner_id, attempt_id, token, kind, step)


def write_pieces(db: Database, owner_id: str, kind: str, pieces: Iterable[bytes | memoryview]) -> str:
    """Store an artifact of no attempt; answers its id."""
    writer = open_writer(db, owner_id, None, None, kind)
    for piece in pieces:
        writer.append(piece)
    return writer.commit()


def repair(db: Database, artifact_id: str, pieces: Iterable[bytes | memoryview]) -> None:
    """Put back every chunk that is not what it was, from the bytes that were stored; raises NotFound where the file has gone.

    In short transactions and in place: each leaves the file nearer to its SHA-256, so whoever reads it meanwhile is given
    what was stored, or Damaged.
    """
    with db.read() as session:
        chunk_size = _still_there(session, artifact_id).chunk_size
    digest, size, count = hashlib.sha256(), 0, 0
    for chunk in _chunked(pieces, chunk_size):
        with db.read() as session:
            found = session.get(ArtifactChunk, (artifact_id, count))
            damaged = found is None or found.data != chunk
        if damaged:
            with db.write() as session:
                _still_there(session, artifact_id, lock=True)
                session.merge(ArtifactChunk(artifact_id=artifact_id, seq=count, data=chunk))
        digest.update(chunk)
        size += len(chunk)
        count += 1
    with db.write() as session:
        artifact = _still_there(session, artifact_id, lock=True)
        artifact.size, artifact.sha256 = size, digest.hexdigest()
        session.execute(
            delete(ArtifactChunk).where(ArtifactChunk.artifact_id == artifact_id, ArtifactChunk.seq >= count)
        )


def _still_there(session: Session, artifact_id: str, *, lock: bool = False) -> Artifact:
    artifact = session.get(Artifact, artifact_id, with_for_update=True if lock else None)
    if artifact is None or artifact.state != "ready":
        raise NotFound(f"there is no artifact {artifact_id}")
    return artifact


def _chunked(pieces: Iterable[bytes | memoryview], size: int) -> Iterator[bytes]:
    """The same bytes, so many at a time; fewer only at the end."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        while len(buffer) >= size:
            yield bytes(buffer[:size])
            del buffer[:size]
    if buffer:
        yield bytes(buffer)


def find_ready(session: Session, attempt_id: str, kind: str) -> Artifact:
    """The attempt's readable artifact of a kind, the newest; raises NotFound."""
    query = select(Artifact).where(
        Artifact.attempt_id == attempt_id, Artifact.kind == kind, Artifact.state == "ready"
    )
    artifact = session.scalars(query.order_by(Artifact.id.desc()).limit(1)).one_or_none()
    if artifact is None:
        raise NotFound(f"attempt {attempt_id} has no {kind}")
    return artifact


def open_range(session: Session, artifact_id: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The artifact's bytes from `start` up to, not including, `end`, a chunk at a time.

    Raises NotFound where there is none that is ready, ValueError where the range is not within it; the iterator raises
    Damaged where a chunk is not whole.
    """
    artifact = _still_there(session, artifact_id)
    stop = artifact.size if end is None else end
    if not 0 <= start <= stop <= artifact.size:
        raise ValueError(f"range {start}-{stop} of an artifact of {artifact.size} bytes")
    return _pieces(session, artifact, start, stop)


def _pieces(session: Session, artifact: Artifact, start: int, stop: int) -> Iterator[bytes]:
    """Raises Damaged where a chunk is missing or has not its size: shorter ones would give no bytes for ever."""
    while start < stop:
        seq, offset = divmod(start, artifact.chunk_size)
        query = select(ArtifactChunk.data).where(ArtifactChunk.artifact_id == artifact.id)
        data = session.scalars(query.where(ArtifactChunk.seq == seq)).one_or_none()
        size = min(artifact.chunk_size, artifact.size - seq * artifact.chunk_size)
        if data is None or len(data) != size:
            there = "is missing" if data is None else f"has {len(data)} bytes of {size}"
            raise Damaged(f"the stored file {artifact.id} is damaged: its chunk {seq} {there}")
        piece = data[offset : offset + stop - start]
        yield piece
        start += len(piece)


class Check:
    """Compares a file with its SHA-256 while it is read, in one range or several; where they don't follow one another, not."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._hash = hashlib.sha256()
        self._end = 0  # of what is hashed, in bytes

    def take(self, start: int, piece: bytes) -> None:
        """What was read from `start` on, before it is given out. Raises Damaged where it is the last and they are not what was stored."""
        if start != self._end:
            return
        self._hash.update(piece)
        self._end += len(piece)
        if self._end == self._artifact.size and self._hash.hexdigest() != self._artifact.sha256:
            raise _damaged(self._artifact.id)


def is_intact(session: Session, artifact_id: str, each_chunk: Callable[[], object] = lambda: None) -> bool:
    """Whether the bytes are those that were stored, by their SHA-256; calls `each_chunk` whenever one has been read."""
    query = (
        select(ArtifactChunk.data).where(ArtifactChunk.artifact_id == artifact_id).order_by(ArtifactChunk.seq)
    )
    digest = hashlib.sha256()
    for data in session.scalars(query.execution_options(yield_per=1)):
        digest.update(data)
        each_chunk()
    return digest.hexdigest() == session.get_one(Artifact, artifact_id).sha256


def check_intact(session: Session, artifact_id: str) -> None:
    """Raises Damaged where the bytes are no longer those that were stored."""
    if not is_intact(session, artifact_id):
        raise _damaged(artifact_id)


def _damaged(artifact_id: str) -> Damaged:
    return Damaged(f"the stored file {artifact_id} is damaged: it has not the SHA-256 of what was stored")


def read_all(session: Session, artifact_id: str) -> bytes:
    """The whole artifact in memory."""
    return b"".join(open_range(session, artifact_id))
