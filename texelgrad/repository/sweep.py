"""Deleting artifacts that nobody needs any more: first nobody finds them, then they go a few chunks at a time."""

from __future__ import annotations

from sqlalchemy import and_, delete, or_, select, tuple_, update
from sqlalchemy.orm import Session

from texelgrad.db import now_us
from texelgrad.domain import LIVE_ATTEMPT_STATES
from texelgrad.models import Artifact, ArtifactChunk, Attempt, DatasetArray, Job
from texelgrad.models_access import Upload

_WEIGHTS_US = 24 * 3600 * 1_000_000  # uploaded weights wait so long for a job that begins with them
_UPLOAD_US = 3600 * 1_000_000  # an upload that takes longer is given up


def sweep_artifacts(session: Session, max_chunks: int) -> int:
    """Delete at most so many chunks of dead artifacts, and those that have none left; answers how many chunks.

    Dead is what an ended attempt left staged, dropped checkpoints, what an upload left without a data set an hour ago, and
    uploaded weights that no job began with for a day.
    """
    old = Artifact.created_at < now_us(session) - _UPLOAD_US
    ended = select(Attempt.id).where(
        Attempt.id == Artifact.attempt_id, Attempt.state.not_in(LIVE_ATTEMPT_STATES)
    )
    used = select(DatasetArray.artifact_id).where(DatasetArray.artifact_id == Artifact.id)
    uploading = select(Upload.id).where(Upload.artifact_id == Artifact.id)
    begun = select(Job.id).where(Job.weights_artifact_id == Artifact.id)
    fresh = and_(Artifact.kind == "uploaded_weights", Artifact.created_at >= now_us(session) - _WEIGHTS_US)
    dead = or_(
        and_(Artifact.state == "staged", ended.exists()),
        Artifact.state == "dropped",
        and_(
            Artifact.attempt_id.is_(None), old, ~used.exists(), ~uploading.exists(), ~begun.exists(), ~fresh
        ),
    )
    # Locked first, and asked again then: a job that was to begin with one of them has committed by now, or will find it
    # dropped. And dropped before the first chunk goes, so that nobody is given half a file.
    locked = select(Artifact.id).where(dead).limit(max_chunks).with_for_update(skip_locked=True)
    candidates = session.scalars(locked).all()
    if not candidates:
        return 0
    drop = update(Artifact).where(Artifact.id.in_(candidates), dead).values(state="dropped")
    drop = drop.execution_options(synchronize_session=False)
    ids = session.scalars(drop.returning(Artifact.id)).all()
    query = select(ArtifactChunk.artifact_id, ArtifactChunk.seq).where(ArtifactChunk.artifact_id.in_(ids))
    chunks = session.execute(query.limit(max_chunks)).all()
    key = tuple_(ArtifactChunk.artifact_id, ArtifactChunk.seq)
    session.execute(delete(ArtifactChunk).where(key.in_([tuple(chunk) for chunk in chunks])))
    left = select(ArtifactChunk.artifact_id).where(ArtifactChunk.artifact_id == Artifact.id)
    session.execute(delete(Artifact).where(Artifact.id.in_(ids), ~left.exists()))
    return len(chunks)
