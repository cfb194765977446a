"""What `why.explain` needs, read from the tables."""

from __future__ import annotations

from sqlalchemy import bindparam, func, or_, select
from sqlalchemy.orm import Session

from texelgrad.db import now_us
from texelgrad.domain import JobState
from texelgrad.models import Job, Worker
from texelgrad.repository.jobs import attempts_of
from texelgrad.repository.lineage import resumable_from_step
from texelgrad.why import AttemptFacts, JobFacts, WorkerFacts, takes_jobs

_SEEN_US = 60 * 1_000_000  # a worker that was silent for longer counts as gone
_WORKERS = (
    select(Worker.id, Worker.state, Worker.draining, Worker.software, Worker.fault)
    .where(Worker.queue == bindparam("queue"), Worker.seen_at >= bindparam("since"))
    .order_by(Worker.id)
)


def facts_of(session: Session, job: Job) -> tuple[JobFacts, list[WorkerFacts]]:
    """The job with its tries and its place in the queue, and the workers of that queue."""
    now = now_us(session)
    workers = workers_of(session, job.queue)
    tried = attempts_of(session, job.id)
    record = (tried[-1].record if tried and job.state == JobState.SUCCEEDED else None) or {}
    attempts = [
        AttemptFacts(a.number, a.state, a.cause, a.message, a.worker_id, a.resumed_from_step) for a in tried
    ]
    facts = JobFacts(
        state=job.state,
        cause=job.cause,
        message=job.message,
        queue=job.queue,
        needs_hardware=job.needs_hardware,
        step=job.step,
        total_steps=job.total_steps,
        wait_s=max(0, job.eligible_at - now) / 1e6,
        deadline_s=None if job.deadline_at is None else max(0, job.deadline_at - now) / 1e6,
        cancel_requested=job.cancel_requested_at is not None,
        ahead=_ahead(session, job, workers, now) if job.state == JobState.QUEUED else 0,
        attempts=attempts,
        warnings=record.get("warnings") or (),
        resumable_from_step=resumable_from_step(session, job),
    )
    return facts, workers


def workers_of(session: Session, queue: str) -> list[WorkerFacts]:
    """The workers of a queue that were seen of late."""
    rows = session.execute(_WORKERS, {"queue": queue, "since": now_us(session) - _SEEN_US})
    return [WorkerFacts(*row) for row in rows]


def _ahead(session: Session, job: Job, workers: list[WorkerFacts], now: int) -> int:
    """Jobs of the same queue that claim_next may take before this one, for the workers that are there."""
    query = select(func.count()).where(
        Job.queue == job.queue,
        Job.state == JobState.QUEUED,
        Job.eligible_at <= now,
        or_(Job.deadline_at.is_(None), Job.deadline_at >= now),
        or_(Job.created_at < job.created_at, (Job.created_at == job.created_at) & (Job.id < job.id)),
    )
    taking = [worker for worker in workers if takes_jobs(worker)]
    if taking and not job.needs_hardware and all(worker.software for worker in taking):
        query = query.where(Job.needs_hardware.is_(False))  # nobody who is there takes those
    return session.scalar(query) or 0
