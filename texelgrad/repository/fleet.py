"""Rows of workers as the keeper and operators see them: who is gone, who shall take no more jobs."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from texelgrad.errors import NotFound
from texelgrad.models import Worker


def workers_on(session: Session, host: str) -> Sequence[str]:
    """Ids of the workers of this machine that have not said that they stopped."""
    return session.scalars(select(Worker.id).where(Worker.host == host, Worker.state != "stopped")).all()


def mark_stopped(session: Session, worker_id: str, fault: str) -> None:
    """Note that a worker is gone, and why."""
    worker = session.get(Worker, worker_id, with_for_update=True)
    if worker is not None:
        worker.state, worker.attempt_id, worker.fault = "stopped", None, fault
        session.flush()


def request_drain(session: Session, worker_id: str, *, draining: bool) -> None:
    """Ask a worker to take no more jobs, or to take them again; it heeds that at its next look. Raises NotFound."""
    worker = session.get(Worker, worker_id, with_for_update=True)
    if worker is None:
        raise NotFound(f"there is no worker {worker_id}")
    if worker.state == "stopped":
        raise NotFound(f"worker {worker_id} has stopped")
    worker.draining = draining
    session.flush()


def forget_workers(session: Session, seen_before: int) -> None:
    """Delete the rows of workers that nobody has seen since then (microseconds)."""
    session.execute(delete(Worker).where(Worker.seen_at < seen_before))
