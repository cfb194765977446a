"""Counts over the whole service, for monitoring: cheap queries, run when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from texelgrad.db import now_us
from texelgrad.domain import FINAL_JOB_STATES, LIVE_ATTEMPT_STATES, JobState
from texelgrad.models import Artifact, Attempt, Job, Worker
from texelgrad.models_access import WebhookDelivery

_SEEN_US = 60 * 1_000_000
_ENDED_US = 3600 * 1_000_000


@dataclass(frozen=True)
class Gauges:
    """The service at one moment."""

    jobs: dict[tuple[str, str], int]  # queue, state (queued or running) -> jobs
    ended: dict[tuple[str, str], int]  # state, cause -> jobs that ended within the last hour
    oldest_queued_s: dict[str, float]  # queue -> age of the job that has waited longest
    attempts: dict[str, int]  # live state -> attempts
    expired_leases: int
    workers: dict[tuple[str, str], int]  # queue, state -> workers seen within the last minute
    artifact_bytes: dict[str, int]  # kind -> bytes
    deliveries: int  # messages to webhooks that wait


def read_gauges(session: Session) -> Gauges:
    """The present counts, all of one snapshot."""
    now = now_us(session)
    unfinished = Job.state.in_((JobState.QUEUED, JobState.RUNNING))
    lately = Job.state.in_(FINAL_JOB_STATES) & (Job.ended_at >= now - _ENDED_US)
    oldest = (
        select(Job.queue, func.min(Job.created_at)).where(Job.state == JobState.QUEUED).group_by(Job.queue)
    )
    live = Attempt.state.in_(LIVE_ATTEMPT_STATES)
    seen = Worker.seen_at >= now - _SEEN_US
    jobs = select(Job.queue, Job.state, func.count()).where(unfinished).group_by(Job.queue, Job.state)
    ended = select(Job.state, Job.cause, func.count()).where(lately).group_by(Job.state, Job.cause)
    attempts = select(Attempt.state, func.count()).where(live).group_by(Attempt.state)
    workers = (
        select(Worker.queue, Worker.state, func.count()).where(seen).group_by(Worker.queue, Worker.state)
    )
    sizes = select(Artifact.kind, func.sum(Artifact.size)).group_by(Artifact.kind)
    expired = select(func.count()).where(live, Attempt.lease_until < now)
    waiting = select(func.count()).where(WebhookDelivery.state == "pending")
    return Gauges(
        jobs={(row[0], row[1]): row[2] for row in session.execute(jobs)},
        ended={(row[0], row[1] or ""): row[2] for row in session.execute(ended)},
        oldest_queued_s={row[0]: (now - row[1]) / 1e6 for row in session.execute(oldest)},
        attempts={row[0]: row[1] for row in session.execute(attempts)},
        expired_leases=session.scalar(expired) or 0,
        workers={(row[0], row[1]): row[2] for row in session.execute(workers)},
        artifact_bytes={row[0]: int(row[1]) for row in session.execute(sizes)},
        deliveries=session.scalar(waiting) or 0,
    )


def last_training_us(session: Session) -> int | None:
    """When a worker last proved that it trains: an attempt that succeeded, or a proof of its own."""
    attempt = session.scalar(select(func.max(Attempt.ended_at)).where(Attempt.state == "succeeded"))
    proof = session.scalar(select(func.max(Worker.proved_at)))
    return max((at for at in (attempt, proof) if at is not None), default=None)
