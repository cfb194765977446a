"""Jobs that follow from others, and their end: where a job began, whether it can be resumed, what continues it, deleting it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from texelgrad.domain import FINAL_JOB_STATES, JobState
from texelgrad.errors import Conflict, NotFound
from texelgrad.models import Artifact, Attempt, Job
from texelgrad.repository.attempts import last_checkpoint
from texelgrad.repository.checkpoints import ready_checkpoints
from texelgrad.repository.locks import lock_job

_NAMED = 5  # jobs that a refusal names


def get_checkpoint(session: Session, job_id: str, artifact_id: str) -> Artifact:
    """One of the job's readable checkpoints; raises NotFound."""
    for artifact in ready_checkpoints(session, job_id):
        if artifact.id == artifact_id:
            return artifact
    raise NotFound(f"job {job_id} has no checkpoint {artifact_id}")


def resumable_from_step(session: Session, job: Job) -> int | None:
    """The step that a resume of the job would go on from; None where it can't be resumed."""
    if job.state not in FINAL_JOB_STATES or job.state == JobState.SUCCEEDED:
        return None
    checkpoint = last_checkpoint(session, job)
    return checkpoint.step if checkpoint else None


def resumed_from_steps(session: Session, jobs: Sequence[Job]) -> dict[str, int | None]:
    """The step at which each of these jobs begins, or began, that continues the run of another, by the jobs' ids."""
    ids = [job.id for job in jobs]
    planned = select(Job.id, Artifact.step).join(Artifact, Artifact.id == Job.resume_artifact_id)
    # What has happened is read from the attempts: resume_artifact_id changes where that checkpoint proves damaged.
    # Of several rows of a job the last counts: its first attempt that trained; where it ended without one, its last.
    begun = (
        select(Job.id, Attempt.resumed_from_step)
        .join(Attempt, Attempt.job_id == Job.id)
        .where(or_(Attempt.training_at.is_not(None), Job.state.in_(FINAL_JOB_STATES)))
        .order_by(Attempt.training_at.desc().nulls_first(), Attempt.number)
    )
    steps: dict[str, int | None] = {}
    for query in (planned, begun):
        steps.update(session.execute(query.where(Job.id.in_(ids))).all())
    return steps


def delete_job(session: Session, owner_id: str, job_id: str) -> None:
    """Delete a job that has ended, with all that its attempts left; the keeper removes the bytes bit by bit.

    Raises NotFound, or Conflict where it has not ended or another job continues it: that one's curves begin here.
    """
    job = lock_job(session, job_id, owner_id)
    if job.state not in FINAL_JOB_STATES:
        raise Conflict(f"job {job_id} is {job.state}: cancel it first")
    if heirs := _heirs(session, job_id):
        raise Conflict(f"{', '.join(heirs)} began with what job {job_id} made: delete that first")
    own = select(Attempt.id).where(Attempt.job_id == job_id)
    session.execute(update(Job).where(Job.parent_id == job_id).values(parent_id=None))
    # One DELETE of many chunks would block every writer for seconds: without an attempt, the sweep takes them.
    session.execute(update(Artifact).where(Artifact.attempt_id.in_(own)).values(attempt_id=None))
    session.execute(update(Attempt).where(Attempt.job_id == job_id).values(parent_id=None))
    session.execute(delete(Job).where(Job.id == job_id))


def _heirs(session: Session, job_id: str) -> Sequence[str]:
    """Some of the jobs that start, or started, from a checkpoint or the weights of this one."""
    own = select(Attempt.id).where(Attempt.job_id == job_id)
    continued = select(Attempt.job_id).where(Attempt.parent_id.in_(own), Attempt.job_id != job_id)
    made = select(Artifact.id).where(Artifact.attempt_id.in_(own))
    begun = or_(Job.resume_artifact_id.in_(made), Job.weights_artifact_id.in_(made))
    query = select(Job.id).where(Job.id != job_id, or_(Job.id.in_(continued), begun))
    return session.scalars(query.order_by(Job.id).limit(_NAMED)).all()
