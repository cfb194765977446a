"""Jobs as their owner sees them: create, find, list, cancel; and the queue as the keeper sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select
from sqlalchemy.orm import Session

from texelgrad.db import now_us
from texelgrad.domain import FINAL_JOB_STATES, Cause, IdPrefix, JobState, new_id
from texelgrad.errors import Conflict, NotFound
from texelgrad.models import Attempt, Base, Event, IdempotencyKey, Job, JobTag
from texelgrad.repository.locks import lock_job, move_job, write_event

_IDEMPOTENCY_US = 24 * 3600 * 1_000_000

# What each POST runs is built once and leaves the unit of work out: that is most of what a POST would cost.
_KEYS, _TAGS, _EVENTS = (
    Base.metadata.tables[table.__tablename__] for table in (IdempotencyKey, JobTag, Event)
)
_THIS_KEY = (_KEYS.c.owner_id == bindparam("owner")) & (_KEYS.c.key == bindparam("name"))
_FIND_KEY = select(_KEYS.c.body_sha256, _KEYS.c.job_id).where(
    _THIS_KEY, _KEYS.c.created_at > bindparam("since")
)
_FORGET_KEY = delete(_KEYS).where(_THIS_KEY, _KEYS.c.created_at <= bindparam("since"))
_ADD_KEY, _ADD_TAG, _ADD_EVENT = insert(_KEYS), insert(_TAGS), insert(_EVENTS)


@dataclass(frozen=True)
class JobFilter:
    """What a list of jobs is limited to; None and empty mean no limit."""

    state: str | None = None
    name: str | None = None
    dataset_id: str | None = None
    parent_id: str | None = None
    tags: Sequence[tuple[str, str]] = ()


def create_job(
    session: Session,
    owner_id: str,
    spec: dict[str, Any],
    *,
    queue: str,
    dataset_id: str | None,
    needs_hardware: bool = False,
    parent_id: str | None = None,
    resume_artifact_id: str | None = None,
    weights_artifact_id: str | None = None,
    deadline_at: int | None = None,
    total_steps: int | None = None,
    idempotency: tuple[str, str] | None = None,
) -> Job:
    """Queue a job from a validated spec. `idempotency` is the key and the SHA-256 of the request's body."""
    now = now_us(session)
    job = Job(
        id=new_id(IdPrefix.JOB),
        owner_id=owner_id,
        parent_id=parent_id,
        resume_artifact_id=resume_artifact_id,
        weights_artifact_id=weights_artifact_id,
        dataset_id=dataset_id,
        name=spec["name"],
        spec_version=spec["spec_version"],
        spec=spec,
        queue=queue,
        needs_hardware=needs_hardware,
        state=JobState.QUEUED,
        max_attempts=spec["limits"]["max_attempts"],
        lost_attempts=0,
        environment_faults=0,
        event_seq=1,
        step=0,
        total_steps=total_steps,
        last_metrics={},
        created_at=now,
        eligible_at=now,
        deadline_at=deadline_at,
    )
    session.add(job)
    session.flush()
    tags: dict[str, str] = spec["tags"]
    if tags:
        session.execute(
            _ADD_TAG, [{"job_id": job.id, "name": name, "value": value} for name, value in tags.items()]
        )
    if idempotency is not None:
        key, body_sha256 = idempotency
        session.execute(_FORGET_KEY, {"owner": owner_id, "name": key, "since": now - _IDEMPOTENCY_US})
        # Of two requests at once, the second breaks the primary key and is rolled back with its job.
        made = {"owner_id": owner_id, "key": key, "body_sha256": body_sha256, "job_id": job.id}
        session.execute(_ADD_KEY, {**made, "created_at": now})
    first = {"state": JobState.QUEUED, "cause": None, "message": None}
    session.execute(
        _ADD_EVENT, {"job_id": job.id, "seq": job.event_seq, "at": now, "type": "state", "data": first}
    )
    return job


def find_idempotent(session: Session, owner_id: str, key: str) -> tuple[str, str] | None:
    """The SHA-256 of the body, and the job, that this key stands for since less than 24 hours."""
    since = now_us(session) - _IDEMPOTENCY_US
    row = session.execute(_FIND_KEY, {"owner": owner_id, "name": key, "since": since}).one_or_none()
    return None if row is None else (row[0], row[1])


def get_job(session: Session, owner_id: str, job_id: str) -> Job:
    """One job; raises NotFound, also where another owner has it."""
    job = session.scalars(select(Job).where(Job.id == job_id, Job.owner_id == owner_id)).one_or_none()
    if job is None:
        raise NotFound(f"there is no job {job_id}")
    return job


def list_jobs(
    session: Session, owner_id: str, filters: JobFilter, limit: int, before: str | None = None
) -> Sequence[Job]:
    """At most `limit` jobs, newest first, older than the job `before`."""
    query = select(Job).where(Job.owner_id == owner_id)
    if before is not None:
        query = query.where(Job.id < before)
    if filters.state is not None:
        query = query.where(Job.state == filters.state)
    for column, wanted in (
        (Job.name, filters.name),
        (Job.dataset_id, filters.dataset_id),
        (Job.parent_id, filters.parent_id),
    ):
        if wanted is not None:
            query = query.where(column == wanted)
    for name, value in filters.tags:
        query = query.where(
            select(JobTag).where(JobTag.job_id == Job.id, JobTag.name == name, JobTag.value == value).exists()
        )
    return session.scalars(query.order_by(Job.id.desc()).limit(limit)).all()


def attempts_of(session: Session, job_id: str) -> Sequence[Attempt]:
    """Every attempt at a job, oldest first."""
    return session.scalars(select(Attempt).where(Attempt.job_id == job_id).order_by(Attempt.number)).all()


def current_attempt(session: Session, job_id: str) -> Attempt | None:
    """The newest attempt at a job."""
    return session.scalars(
        select(Attempt).where(Attempt.job_id == job_id).order_by(Attempt.number.desc()).limit(1)
    ).one_or_none()


def newest_attempts(session: Session, job_ids: Sequence[str]) -> dict[str, Attempt]:
    """The newest attempt at each of these jobs that has one."""
    query = select(Attempt).where(Attempt.job_id.in_(job_ids)).order_by(Attempt.number)
    return {attempt.job_id: attempt for attempt in session.scalars(query)}


def events_after(session: Session, job_id: str, seq: int, limit: int = 1000) -> Sequence[Event]:
    """The job's events after number `seq`, oldest first."""
    query = select(Event).where(Event.job_id == job_id, Event.seq > seq).order_by(Event.seq)
    return session.scalars(query.limit(limit)).all()


def request_cancel(session: Session, owner_id: str, job_id: str) -> Job:
    """Cancel a queued job at once, and ask the worker of a running one to stop; asking twice changes nothing.

    Raises Conflict where the job ended otherwise: whichever commits first wins.
    """
    job = lock_job(session, job_id, owner_id)
    if job.state == JobState.CANCELLED or (job.state == JobState.RUNNING and job.cancel_requested_at):
        return job
    if job.state in FINAL_JOB_STATES:
        raise Conflict(f"job {job_id} has ended already: {job.state}")
    now = now_us(session)
    job.cancel_requested_at = now
    if job.state == JobState.QUEUED:
        move_job(session, job, JobState.CANCELLED, Cause.CANCELLED)
        job.ended_at = now
    else:
        write_event(session, job, "cancel_requested", {})
    session.flush()
    return job


def queued_counts(session: Session) -> dict[str, int]:
    """How many jobs of each queue could be claimed now."""
    query = (
        select(Job.queue, func.count())
        .where(Job.state == JobState.QUEUED, Job.eligible_at <= now_us(session))
        .group_by(Job.queue)
    )
    return {row[0]: row[1] for row in session.execute(query)}


def abort_overdue(session: Session, limit: int = 100) -> list[str]:
    """Abort jobs that are still queued past their deadline; answers their ids."""
    now = now_us(session)
    query = select(Job).where(Job.state == JobState.QUEUED, Job.deadline_at < now).limit(limit)
    overdue = session.scalars(query.with_for_update(skip_locked=True)).all()
    for job in overdue:
        move_job(session, job, JobState.ABORTED, Cause.DEADLINE, "still queued at its deadline")
        job.ended_at = now
    session.flush()
    return [job.id for job in overdue]
