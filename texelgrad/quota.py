"""How much one owner, and everybody together, may have: checked in the transaction that would exceed it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import bindparam, func, literal, select, text
from sqlalchemy.orm import Session

from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.domain import JobState
from texelgrad.errors import Overloaded, TooMany
from texelgrad.models import Artifact, Dataset, DatasetArray, Job
from texelgrad.models_access import Upload

_JOBS_S, _BYTES_S = 30, 300  # after which asking again may help

# Counted no further than the limit, and in the index alone: no row is looked at.
_ACTIVE = select(func.count()).select_from(
    select(literal(1))
    .where(Job.owner_id == bindparam("owner"), Job.state.in_((JobState.QUEUED, JobState.RUNNING)))
    .limit(bindparam("most"))
    .subquery()
)
_WAITING = select(func.count()).select_from(
    select(literal(1))
    .where(Job.queue == bindparam("queue"), Job.state == JobState.QUEUED)
    .limit(bindparam("most"))
    .subquery()
)


@dataclass(frozen=True)
class Quota:
    """What an owner may have at once; 0 means no limit."""

    max_jobs: int = 0  # queued and running
    max_bytes: int = 0  # of data sets and uploads


UNLIMITED = Quota()


def check_jobs(session: Session, settings: Settings, owner_id: str, quota: Quota) -> None:
    """Whether one more job may be queued; raises TooMany for the owner's part, Overloaded for the queue's."""
    if quota.max_jobs:
        _one_at_a_time(session, owner_id)
        count = session.scalar(_ACTIVE, {"owner": owner_id, "most": quota.max_jobs}) or 0
        if count >= quota.max_jobs:
            raise TooMany(f"{count} jobs are queued or running, {quota.max_jobs} are allowed.", _JOBS_S)
    waiting = session.scalar(_WAITING, {"queue": settings.queue, "most": settings.max_queued}) or 0
    if waiting >= settings.max_queued:
        raise Overloaded(f"Queue {settings.queue} is full: {settings.max_queued} jobs wait.", _JOBS_S)


def check_bytes(session: Session, owner_id: str, quota: Quota, more: int) -> None:
    """Whether `more` bytes of data sets may be stored; raises TooMany."""
    if not quota.max_bytes:
        return
    _one_at_a_time(session, owner_id)
    stored = (
        select(func.coalesce(func.sum(Artifact.size), 0))
        .join(DatasetArray, DatasetArray.artifact_id == Artifact.id)
        .join(Dataset, Dataset.id == DatasetArray.dataset_id)
        .where(Dataset.owner_id == owner_id)
    )
    announced = select(func.coalesce(func.sum(Upload.size), 0)).where(Upload.owner_id == owner_id)
    used = int(session.scalar(stored) or 0) + int(session.scalar(announced) or 0)
    if used + more > quota.max_bytes:
        message = f"Data sets take {used} bytes, {more} more would exceed the {quota.max_bytes} allowed."
        raise TooMany(message, _BYTES_S)


def check_disk(db: Database, settings: Settings, more: int = 0) -> None:
    """Whether the disk of an SQLite database has room for `more` bytes above the watermark; raises Overloaded."""
    if not db.is_sqlite or not db.url.database:
        return  # a database server watches its own
    free = shutil.disk_usage(Path(db.url.database).parent).free
    if free - more < settings.min_free_bytes:
        need = settings.min_free_bytes + more
        raise Overloaded(f"The disk has {free} bytes free, and {need} are needed.", _BYTES_S)


def _one_at_a_time(session: Session, owner_id: str) -> None:
    """Let an owner's transactions that count before they add wait for each other; SQLite's writers do anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(
            text("SELECT pg_advisory_xact_lock(hashtext(:owner))"), {"owner": f"quota {owner_id}"}
        )
