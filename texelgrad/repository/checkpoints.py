"""Which checkpoints of a job are kept: the last, and the best where the job validates; but none that is damaged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from texelgrad.models import Artifact, Attempt, Job
from texelgrad.repository.attempts import last_checkpoint
from texelgrad.repository.locks import lock_attempt
from texelgrad.repository.telemetry import curves


def ready_checkpoints(session: Session, job_id: str) -> Sequence[Artifact]:
    """The job's complete checkpoints, the furthest first; of several at one step the newest first."""
    query = (
        select(Artifact)
        .join(Attempt, Attempt.id == Artifact.attempt_id)
        .where(Attempt.job_id == job_id, Artifact.kind == "checkpoint", Artifact.state == "ready")
        .order_by(Artifact.step.desc(), Artifact.id.desc())
    )
    return session.scalars(query).all()


def prune_checkpoints(session: Session, job_id: str) -> list[str]:
    """Drop all but the furthest checkpoint and the one with the least validation loss; answers the dropped ids.

    Their chunks are deleted by the keeper's sweep.
    """
    checkpoints = ready_checkpoints(session, job_id)
    if len(checkpoints) < 2:
        return []
    kept = {checkpoints[0].id, _best(session, job_id, checkpoints)}
    # what another job continues from stays for its next attempt
    kept.update(session.scalars(select(Job.resume_artifact_id).where(Job.resume_artifact_id.is_not(None))))
    dropped = [checkpoint.id for checkpoint in checkpoints if checkpoint.id not in kept]
    session.execute(update(Artifact).where(Artifact.id.in_(dropped)).values(state="dropped"))
    session.flush()
    return dropped


def drop_damaged_checkpoint(session: Session, attempt_id: str, token: str, artifact_id: str) -> None:
    """Give up the checkpoint that the attempt was to continue from. Raises Fenced.

    What would have begun with it, the attempt's own job and others, begins with the one before, or from the start; so
    does a resume of a job that began with it and has ended.
    """
    lock_attempt(session, attempt_id, token)
    damaged = session.get_one(Artifact, artifact_id)
    damaged.state = "dropped"
    session.flush()
    maker = session.get_one(Attempt, damaged.attempt_id)
    before = last_checkpoint(session, session.get_one(Job, maker.job_id))
    heirs = update(Job).where(Job.resume_artifact_id == artifact_id)
    session.execute(heirs.values(resume_artifact_id=before.id if before else None))


def _best(session: Session, job_id: str, checkpoints: Sequence[Artifact]) -> str | None:
    """The checkpoint whose last validation before it had the least loss; None without validation."""
    curve = curves(session, job_id, ["val_loss"]).get("val_loss")
    if curve is None:
        return None
    losses: dict[str, float] = {}
    for checkpoint in checkpoints:
        validations = int(np.searchsorted(curve.steps, checkpoint.step or 0, side="right"))
        if validations and np.isfinite(curve.values[validations - 1]):
            losses[checkpoint.id] = float(curve.values[validations - 1])
    return min(losses, key=losses.__getitem__, default=None)
