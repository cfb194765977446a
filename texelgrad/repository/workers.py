"""Rows of workers, and named leases that only one process holds at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from texelgrad.db import now_us
from texelgrad.jsonable import jsonable
from texelgrad.models import Lease, Worker

_FIELDS = frozenset(
    {"state", "engine_hash", "renderer", "gpu", "software", "attempt_id", "proof", "proved_at", "fault"}
)


def touch_worker(session: Session, worker_id: str, *, host: str, pid: int, queue: str, **fields: Any) -> bool:
    """Create or refresh a worker's row; answers whether it is asked to drain.

    `fields`: state (starting, idle, busy, draining, broken, stopped), engine_hash, renderer, gpu, software,
    attempt_id, proof (the device record), proved_at (microseconds), fault. What is not named stays as it is.
    """
    if unknown := set(fields) - _FIELDS:
        raise TypeError(f"unknown fields {sorted(unknown)}; there are {sorted(_FIELDS)}")
    now = now_us(session)
    worker = session.get(Worker, worker_id, with_for_update=True)
    if worker is None:
        worker = Worker(id=worker_id, host=host, pid=pid, queue=queue, state="starting", started_at=now)
        worker.draining = False
        session.add(worker)
    worker.host, worker.pid, worker.queue, worker.seen_at = host, pid, queue, now
    for name, value in fields.items():
        setattr(worker, name, jsonable(value))
    session.flush()
    return worker.draining


def list_workers(
    session: Session,
    seen_since: int = 0,
    *,
    limit: int | None = None,
    after: str | None = None,
    queue: str | None = None,
    state: str | None = None,
) -> Sequence[Worker]:
    """Workers that were seen since then (microseconds), by id, past the worker `after`."""
    query = select(Worker).where(Worker.seen_at >= seen_since)
    if after is not None:
        query = query.where(Worker.id > after)
    if queue is not None:
        query = query.where(Worker.queue == queue)
    if state is not None:
        query = query.where(Worker.state == state)
    return session.scalars(query.order_by(Worker.id).limit(limit)).all()


def take_lease(session: Session, name: str, holder: str, lease_s: float) -> bool:
    """Take or renew the lease `name` for `lease_s` seconds; False while somebody else holds it."""
    now = now_us(session)
    until = now + int(lease_s * 1e6)
    taken = session.scalars(
        update(Lease)
        .where(Lease.name == name, or_(Lease.holder == holder, Lease.until < now))
        .values(holder=holder, until=until)
        .returning(Lease.name)
    ).one_or_none()
    if taken is not None:
        return True
    if session.get(Lease, name) is not None:
        return False
    try:
        with session.begin_nested():
            session.add(Lease(name=name, holder=holder, until=until))
    except IntegrityError:  # another process made the row since
        return False
    return True


def release_lease(session: Session, name: str, holder: str) -> None:
    """Give the lease up at once, where it is ours."""
    session.execute(update(Lease).where(Lease.name == name, Lease.holder == holder).values(until=0))
