"""Uploads in pieces: bytes are kept in whole chunks, so that a broken connection costs less than one."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from texelgrad.db import now_us
from texelgrad.domain import IdPrefix, new_id
from texelgrad.errors import Conflict, NotFound
from texelgrad.models import CHUNK_BYTES, Artifact, ArtifactChunk
from texelgrad.models_access import Upload
from texelgrad.rows import Columns

_KEPT_US = 24 * 3600 * 1_000_000  # an upload that takes longer is given up


def open_upload(
    session: Session, owner_id: str, name: str, size: int, format_name: str | None, columns: Columns
) -> Upload:
    """Announce a file of `size` bytes; its id will be the data set's."""
    now = now_us(session)
    artifact = Artifact(
        id=new_id(IdPrefix.ARTIFACT),
        owner_id=owner_id,
        kind="upload",
        size=0,
        chunk_size=CHUNK_BYTES,
        state="staged",
        created_at=now,
    )
    session.add(artifact)
    session.flush()
    upload = Upload(
        id=new_id(IdPrefix.DATASET),
        owner_id=owner_id,
        name=name,
        format=format_name,
        target=columns.target,
        weight=columns.weight,
        size=size,
        received=0,
        artifact_id=artifact.id,
        created_at=now,
    )
    session.add(upload)
    session.flush()
    return upload


def get_upload(session: Session, owner_id: str, upload_id: str, *, lock: bool = False) -> Upload:
    """One upload that is not complete yet; raises NotFound, also where another owner has it."""
    query = select(Upload).where(Upload.id == upload_id, Upload.owner_id == owner_id)
    if lock:
        query = query.with_for_update().execution_options(populate_existing=True)
    upload = session.scalars(query).one_or_none()
    if upload is None:
        raise NotFound(f"there is no data set {upload_id} that waits for its content")
    return upload


def check_piece(upload: Upload, offset: int, size: int) -> None:
    """Whether so many bytes may follow at this place; raises Conflict."""
    if offset != upload.received:
        raise Conflict(f"{upload.received} bytes are here: go on at offset {upload.received}, not {offset}")
    if size > upload.size - offset:
        raise Conflict(f"the file was announced with {upload.size} bytes")


def add_chunk(session: Session, owner_id: str, upload_id: str, offset: int, data: bytes) -> Upload:
    """Append a whole chunk, or the file's rest; raises Conflict as check_piece."""
    upload = get_upload(session, owner_id, upload_id, lock=True)
    check_piece(upload, offset, len(data))
    seq = offset // CHUNK_BYTES
    session.add(ArtifactChunk(artifact_id=upload.artifact_id, seq=seq, data=data))
    upload.received += len(data)
    session.flush()
    return upload


def chunks(session: Session, upload: Upload) -> Iterator[bytes]:
    """The file's bytes, chunk by chunk."""
    for seq in range(-(-upload.received // CHUNK_BYTES)):
        query = select(ArtifactChunk.data).where(ArtifactChunk.artifact_id == upload.artifact_id)
        yield session.scalars(query.where(ArtifactChunk.seq == seq)).one()


def close_upload(session: Session, upload_id: str) -> None:
    """Forget an upload; its bytes go with the sweep."""
    session.execute(delete(Upload).where(Upload.id == upload_id))


def drop_upload(session: Session, owner_id: str, upload_id: str) -> bool:
    """Give up an upload; False where there is none of this owner."""
    query = delete(Upload).where(Upload.id == upload_id, Upload.owner_id == owner_id).returning(Upload.id)
    return session.scalars(query).one_or_none() is not None


def forget_stale(session: Session) -> None:
    """Forget what was begun a day ago."""
    session.execute(delete(Upload).where(Upload.created_at < now_us(session) - _KEPT_US))
