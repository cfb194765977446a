"""Locking of one job or one attempt, the fence that every write of an attempt passes, and the event log."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from texelgrad.db import now_us
from texelgrad.domain import FINAL_JOB_STATES, LIVE_ATTEMPT_STATES, JobState, job_may
from texelgrad.errors import Fenced, IllegalTransition, NotFound
from texelgrad.models import Attempt, Event, Job
from texelgrad.repository.outbox import announce


def lock_attempt(session: Session, attempt_id: str, token: str) -> Attempt:
    """The attempt, locked until the transaction ends; raises Fenced unless it is live and the token is its own.

    SQLite ignores FOR UPDATE, but a write transaction has the whole database there.
    """
    attempt = session.scalars(
        select(Attempt)
        .where(Attempt.id == attempt_id, Attempt.token == token, Attempt.state.in_(LIVE_ATTEMPT_STATES))
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one_or_none()
    if attempt is None:
        raise Fenced(f"attempt {attempt_id} has ended or belongs to another claim")
    return attempt


def lock_job(session: Session, job_id: str, owner_id: str | None = None) -> Job:
    """The job, locked until the transaction ends; raises NotFound, also where another owner has it."""
    query = select(Job).where(Job.id == job_id)
    if owner_id is not None:
        query = query.where(Job.owner_id == owner_id)
    job = session.scalars(query.with_for_update().execution_options(populate_existing=True)).one_or_none()
    if job is None:
        raise NotFound(f"there is no job {job_id}")
    return job


def write_event(session: Session, job: Job, kind: str, data: dict[str, Any]) -> None:
    """Append an event to a locked job; its number is the job's next."""
    job.event_seq += 1
    session.add(Event(job_id=job.id, seq=job.event_seq, at=now_us(session), type=kind, data=data))


def move_job(
    session: Session, job: Job, state: JobState, cause: str | None = None, message: str | None = None
) -> None:
    """Take a locked job to another state, with its event; raises IllegalTransition."""
    if not job_may(JobState(job.state), state):
        raise IllegalTransition(f"job {job.id} is {job.state} and can't become {state}")
    job.state = state
    job.cause, job.message = cause, message
    write_event(session, job, "state", {"state": state, "cause": cause, "message": message})
    if state in FINAL_JOB_STATES:
        announce(session, job)
