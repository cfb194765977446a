"""The life of an attempt: claim, lease, progress through its states, end; and what its end means for the job."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from texelgrad.db import now_us
from texelgrad.domain import (
    LIVE_ATTEMPT_STATES,
    MAX_ENVIRONMENT_FAULTS,
    POLICIES,
    AttemptState,
    Cause,
    IdPrefix,
    JobState,
    Policy,
    attempt_may,
    environment_delay_s,
    new_id,
)
from texelgrad.errors import Conflict, Fenced, IllegalTransition
from texelgrad.jsonable import jsonable
from texelgrad.models import RESULTS, Artifact, Attempt, Job, Worker
from texelgrad.prediction import column_order, columns_of
from texelgrad.repository.datasets import array_infos, arrays_of
from texelgrad.repository.locks import lock_attempt, lock_job, move_job, write_event
from texelgrad.repository.logs import write_line

_LEVELS = {
    AttemptState.SUCCEEDED: "info",
    AttemptState.CANCELLED: "info",
    AttemptState.LOST: "warning",
    AttemptState.FAILED: "error",
}
"""How loud an attempt's end stands in the job's log."""


@dataclass(frozen=True)
class DataArray:
    """One array of the job's data set: raw little-endian bytes in C order, in one artifact."""

    name: str
    role: str  # input | target
    dtype: str  # float32 | int32
    shape: tuple[int, ...]
    artifact_id: str
    order: tuple[int, ...] | None = None  # where each column stands that a model was trained on


@dataclass(frozen=True)
class Resume:
    """The checkpoint to continue from."""

    artifact_id: str
    step: int
    measured: bool  # whether an earlier attempt at the same job made a precision report


@dataclass(frozen=True)
class Claim:
    """What a worker gets: the job, and the token that every write needs."""

    job_id: str
    attempt_id: str
    number: int  # of the attempt within the job, from 1
    token: str
    owner_id: str
    spec: dict[str, Any]
    data: tuple[DataArray, ...]
    resume: Resume | None
    weights_artifact_id: str | None = None  # that the job begins with


def claim_next(session: Session, queue: str, worker_id: str, lease_s: float) -> Claim | None:
    """Claim the oldest job of the queue that this worker may run, or None.

    Two claimers never get the same job: the row is locked while its state changes, and others skip it.
    """
    now = now_us(session)
    query = select(Job).where(
        Job.queue == queue,
        Job.state == JobState.QUEUED,
        Job.eligible_at <= now,
        or_(Job.deadline_at.is_(None), Job.deadline_at >= now),
    )
    if session.scalar(select(Worker.software).where(Worker.id == worker_id)):
        query = query.where(Job.needs_hardware.is_(False))
    query = query.order_by(Job.created_at, Job.id).limit(1).with_for_update(skip_locked=True)
    job = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if job is None:
        return None

    checkpoint = last_checkpoint(session, job)
    last_number = session.scalar(select(func.max(Attempt.number)).where(Attempt.job_id == job.id)) or 0
    attempt = Attempt(
        id=new_id(IdPrefix.ATTEMPT),
        owner_id=job.owner_id,
        job_id=job.id,
        number=last_number + 1,
        parent_id=checkpoint.attempt_id if checkpoint else None,
        resumed_from_step=checkpoint.step if checkpoint else None,
        not_bit_exact=_inherited_doubt(session, checkpoint),
        worker_id=worker_id,
        token=secrets.token_urlsafe(16),
        lease_until=now + int(lease_s * 1e6),
        state=AttemptState.CLAIMED,
        created_at=now,
    )
    session.add(attempt)
    move_job(session, job, JobState.RUNNING)
    job.started_at = job.started_at or now
    job.step = attempt.resumed_from_step or 0
    _attempt_event(session, job, attempt)
    session.flush()
    return Claim(
        job_id=job.id,
        attempt_id=attempt.id,
        number=attempt.number,
        token=attempt.token,
        owner_id=job.owner_id,
        spec=job.spec,
        data=_data(session, job),
        resume=Resume(checkpoint.id, checkpoint.step or 0, _measured(session, job)) if checkpoint else None,
        weights_artifact_id=job.weights_artifact_id,
    )


def _data(session: Session, job: Job) -> tuple[DataArray, ...]:
    """What the job reads; one that predicts takes the columns of a table in the order that its model was trained on."""
    predict = job.spec.get("predict")
    trained = session.get(Job, predict["job"]) if predict else None
    wanted = columns_of(array_infos(session, trained.dataset_id)) if trained else {}
    arrays = arrays_of(session, job.dataset_id) if job.dataset_id else ()
    return tuple(
        DataArray(
            name=each.name,
            role=each.role,
            dtype=each.dtype,
            shape=tuple(each.shape),
            artifact_id=each.artifact_id,
            order=column_order(wanted.get(each.name), each.stats.get("columns")),
        )
        for each in arrays
    )


def last_checkpoint(session: Session, job: Job) -> Artifact | None:
    """The furthest complete checkpoint of the job, of several at one step the newest; else what it resumes from."""
    query = (
        select(Artifact)
        .join(Attempt, Attempt.id == Artifact.attempt_id)
        .where(Attempt.job_id == job.id, Artifact.kind == "checkpoint", Artifact.state == "ready")
        .order_by(Artifact.step.desc(), Artifact.id.desc())
    )
    if (own := session.scalars(query.limit(1)).one_or_none()) is not None or job.resume_artifact_id is None:
        return own
    return session.get(Artifact, job.resume_artifact_id)


def _measured(session: Session, job: Job) -> bool:
    """Whether an attempt at the job has made its precision report."""
    reports = select(Attempt.id).where(Attempt.job_id == job.id, Attempt.diagnostics.is_not(None))
    return session.scalar(reports.limit(1)) is not None


def _inherited_doubt(session: Session, checkpoint: Artifact | None) -> str | None:
    """Why what follows may differ in bits from an uninterrupted run: because the checkpoint does already."""
    if checkpoint is None or checkpoint.attempt_id is None:
        return None
    return session.get_one(Attempt, checkpoint.attempt_id).not_bit_exact


def renew_lease(session: Session, attempt_id: str, token: str, lease_s: float) -> bool:
    """Hold the attempt for `lease_s` seconds from now; False where it is no longer the caller's."""
    try:
        attempt = lock_attempt(session, attempt_id, token)
    except Fenced:
        return False
    attempt.lease_until = now_us(session) + int(lease_s * 1e6)
    session.flush()
    return True


def cancel_requested(session: Session, attempt_id: str) -> bool:
    """Whether the attempt's job is asked to stop."""
    query = select(Job.cancel_requested_at).join(Attempt, Attempt.job_id == Job.id)
    return session.scalar(query.where(Attempt.id == attempt_id)) is not None


def advance_attempt(session: Session, attempt_id: str, token: str, state: AttemptState) -> None:
    """Take the attempt to its next live state; raises Fenced or IllegalTransition. Ends go through finish_attempt."""
    attempt = lock_attempt(session, attempt_id, token)
    if state not in LIVE_ATTEMPT_STATES:
        raise IllegalTransition(f"an attempt becomes {state} only by finish_attempt")
    _move_attempt(attempt, state)
    if state == AttemptState.TRAINING:
        attempt.training_at = now_us(session)
    _attempt_event(session, lock_job(session, attempt.job_id), attempt)
    session.flush()


def finish_attempt(
    session: Session,
    attempt_id: str,
    token: str,
    outcome: AttemptState,
    cause: Cause,
    message: str | None = None,
    failure: dict[str, Any] | None = None,
) -> JobState:
    """End the attempt, and with it the job, or queue the job again; answers the job's new state.

    `outcome` is succeeded (needs complete weights or predictions, which become readable here), failed, cancelled or lost;
    `failure` is what the page reported besides code and message. Raises Fenced, IllegalTransition or Conflict.
    """
    attempt = lock_attempt(session, attempt_id, token)
    if outcome == AttemptState.SUCCEEDED:
        _publish_result(session, attempt)
    return _end(session, attempt, outcome, cause, message, failure)


def reap_expired(session: Session, limit: int = 100) -> list[str]:
    """End attempts whose lease has run out; their jobs are queued again or fail. Answers the jobs' ids."""
    query = select(Attempt).where(
        and_(Attempt.state.in_(LIVE_ATTEMPT_STATES), Attempt.lease_until < now_us(session))
    )
    expired = session.scalars(
        query.limit(limit).with_for_update(skip_locked=True).execution_options(populate_existing=True)
    ).all()
    for attempt in expired:
        message = f"worker {attempt.worker_id} did not renew its lease"
        _end(session, attempt, AttemptState.LOST, Cause.LEASE_EXPIRED, message, None)
    return [attempt.job_id for attempt in expired]


def release_attempts(session: Session, worker_id: str) -> list[str]:
    """End the attempts of a worker that is gone for sure, as if their leases had run out. Answers the jobs' ids.

    Its runner may live a moment longer: the token that it holds writes nothing any more.
    """
    query = select(Attempt).where(Attempt.worker_id == worker_id, Attempt.state.in_(LIVE_ATTEMPT_STATES))
    released = session.scalars(query.with_for_update().execution_options(populate_existing=True)).all()
    for attempt in released:
        message = f"worker {worker_id} ended in the middle of it"
        _end(session, attempt, AttemptState.LOST, Cause.WORKER_DIED, message, None)
    return [attempt.job_id for attempt in released]


def _publish_result(session: Session, attempt: Attempt) -> None:
    staged = session.scalars(
        select(Artifact).where(
            Artifact.attempt_id == attempt.id, Artifact.state == "staged", Artifact.sha256.is_not(None)
        )
    ).all()
    if not any(artifact.kind in RESULTS for artifact in staged):
        raise Conflict(f"attempt {attempt.id} has no complete weights or predictions and can't succeed")
    for artifact in staged:
        artifact.state = "ready"


def _end(
    session: Session,
    attempt: Attempt,
    outcome: AttemptState,
    cause: Cause,
    message: str | None,
    failure: dict[str, Any] | None,
) -> JobState:
    """End a locked attempt and decide what becomes of its job."""
    now = now_us(session)
    _move_attempt(attempt, outcome)
    attempt.cause, attempt.message, attempt.ended_at = cause, message, now
    job = lock_job(session, attempt.job_id)
    _attempt_event(session, job, attempt)
    write_line(
        session, attempt, _LEVELS[outcome], f"{outcome}: {cause}" + (f": {message}" if message else "")
    )

    state = _verdict(job, outcome, cause)
    if state == JobState.QUEUED and POLICIES[cause] == Policy.ENVIRONMENT:
        job.eligible_at = now + environment_delay_s(job.environment_faults) * 1_000_000
    move_job(session, job, state, Cause.CANCELLED if state == JobState.CANCELLED else cause, message)
    job.failure = jsonable(failure) if state != JobState.SUCCEEDED else None
    job.ended_at = None if state == JobState.QUEUED else now
    session.flush()
    return state


def _verdict(job: Job, outcome: AttemptState, cause: Cause) -> JobState:
    """The job's state after an attempt that ended so; counts the attempt."""
    if outcome == AttemptState.SUCCEEDED:
        return JobState.SUCCEEDED
    if outcome == AttemptState.CANCELLED:
        return JobState.CANCELLED
    policy = POLICIES[cause]
    if policy == Policy.FAIL:
        return JobState.FAILED
    if policy == Policy.RETRY:
        job.lost_attempts += 1
        exhausted = job.lost_attempts >= job.max_attempts
    else:
        job.environment_faults += 1
        exhausted = job.environment_faults >= MAX_ENVIRONMENT_FAULTS
    if job.cancel_requested_at is not None:
        return JobState.CANCELLED
    return JobState.FAILED if exhausted else JobState.QUEUED


def _move_attempt(attempt: Attempt, state: AttemptState) -> None:
    if not attempt_may(AttemptState(attempt.state), state):
        raise IllegalTransition(f"attempt {attempt.id} is {attempt.state} and can't become {state}")
    attempt.state = state


def _attempt_event(session: Session, job: Job, attempt: Attempt) -> None:
    write_event(
        session,
        job,
        "attempt",
        {
            "attempt_id": attempt.id,
            "number": attempt.number,
            "state": attempt.state,
            "cause": attempt.cause,
            "message": attempt.message,
            "worker_id": attempt.worker_id,
            "resumed_from_step": attempt.resumed_from_step,
        },
    )
