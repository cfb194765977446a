"""What a running attempt reports (curves, progress, record, diagnostics), and the curves as readers see them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Text, cast, func, or_, select
from sqlalchemy.orm import Session

from texelgrad.jsonable import jsonable
from texelgrad.metrics import Curve, Piece, assemble
from texelgrad.models import Attempt, MetricChunk
from texelgrad.repository.jobs import current_attempt
from texelgrad.repository.locks import lock_attempt, lock_job


def append_metrics(
    session: Session,
    attempt_id: str,
    token: str,
    keys: Sequence[str],
    count: int,
    steps: bytes,
    values: bytes,
) -> None:
    """Append `count` points: `steps` little-endian uint32, `values` float64, one row of `keys` a step.

    Raises Fenced, or ValueError where the lengths don't fit.
    """
    if not keys or count < 1 or len(steps) != 4 * count or len(values) != 8 * count * len(keys):
        raise ValueError(f"{count} points of {len(keys)} keys don't fit {len(steps)} and {len(values)} bytes")
    lock_attempt(session, attempt_id, token)
    last = session.scalar(select(func.max(MetricChunk.seq)).where(MetricChunk.attempt_id == attempt_id)) or 0
    chunk = MetricChunk(
        attempt_id=attempt_id,
        seq=last + 1,
        first_step=int.from_bytes(steps[:4], "little"),
        last_step=int.from_bytes(steps[-4:], "little"),
        keys=list(keys),
        steps=steps,
        values=values,
    )
    session.add(chunk)
    session.flush()


def record_progress(
    session: Session,
    attempt_id: str,
    token: str,
    step: int,
    total_steps: int | None,
    last_metrics: dict[str, Any] | None = None,
) -> None:
    """Note how far the attempt is; `last_metrics` are merged into the job's, by key. Raises Fenced."""
    attempt = lock_attempt(session, attempt_id, token)
    job = lock_job(session, attempt.job_id)
    job.step = step
    if total_steps is not None:
        job.total_steps = total_steps
    job.last_metrics = {**job.last_metrics, **jsonable(last_metrics or {})}
    session.flush()


def save_record(session: Session, attempt_id: str, token: str, record: dict[str, Any]) -> None:
    """Merge `record` (docs/page-protocol.md) into the attempt's; what stands in columns of its own is moved or noted there."""
    attempt = lock_attempt(session, attempt_id, token)
    merged = {**(attempt.record or {}), **jsonable(record)}
    if normalization := merged.pop("normalization", None):
        lock_job(session, attempt.job_id).normalization = normalization
    stopping, validation = merged.get("early_stopping") or {}, merged.get("validation") or {}
    if stopping.get("restored"):
        # What the job is known by must be what its weights do, not what the last ones did.
        job = lock_job(session, attempt.job_id)
        curves = {key: value for key, value in validation.items() if key in job.last_metrics}
        job.last_metrics = {**job.last_metrics, **curves}
    attempt.record = merged
    attempt.backend, attempt.renderer = merged.get("backend"), merged.get("renderer")
    attempt.software, attempt.plan_key = merged.get("software"), merged.get("planKey")
    resumed: dict[str, Any] = merged.get("resumed") or {}
    if resumed.get("bitExact") is False:
        attempt.not_bit_exact = attempt.not_bit_exact or _difference(session, attempt)
    session.flush()


def doubt_bits(session: Session, attempt_id: str, token: str) -> None:
    """Note that the attempt goes on under another plan key than the checkpoint's that it continues. Raises Fenced."""
    attempt = lock_attempt(session, attempt_id, token)
    attempt.not_bit_exact = attempt.not_bit_exact or _difference(session, attempt)
    session.flush()


def _difference(session: Session, attempt: Attempt) -> str:
    """Why an attempt may not have the bits of the one whose checkpoint it continues."""
    parent = session.get(Attempt, attempt.parent_id) if attempt.parent_id else None
    if parent is None:
        return "the checkpoint was made under another plan key"
    for what, ours, theirs in (
        ("renderer", attempt.renderer, parent.renderer),
        ("Chromium", _chromium(attempt), _chromium(parent)),
    ):
        if ours != theirs:
            return f"another {what}: the checkpoint is from {theirs}, what follows from {ours}"
    return "the checkpoint was made under another plan key: another driver, engine or choice of kernels"


def _chromium(attempt: Attempt) -> str | None:
    launch: dict[str, Any] = (attempt.record or {}).get("launch") or {}
    return launch.get("chromium")


def save_diagnostics(session: Session, attempt_id: str, token: str, report: dict[str, Any]) -> None:
    """Store the precision report of the attempt's device, in place of an earlier one. Raises Fenced."""
    lock_attempt(session, attempt_id, token).diagnostics = jsonable(report)
    session.flush()


def chunks_after(session: Session, attempt_id: str, seq: int, limit: int = 1000) -> Sequence[MetricChunk]:
    """The attempt's metric chunks after number `seq`, oldest first."""
    query = select(MetricChunk).where(MetricChunk.attempt_id == attempt_id, MetricChunk.seq > seq)
    return session.scalars(query.order_by(MetricChunk.seq).limit(limit)).all()


def lineage(session: Session, job_id: str) -> list[tuple[Attempt, int | None]]:
    """The newest attempt and all that it continues, also of other jobs, the first one first.

    Beside each the last of its steps that counts: where the next one resumed; None for the newest.
    """
    found: list[tuple[Attempt, int | None]] = []
    attempt = current_attempt(session, job_id)
    cut: int | None = None
    while attempt is not None:
        found.append((attempt, cut))
        resumed = attempt.resumed_from_step or 0
        cut = resumed if cut is None else min(cut, resumed)
        attempt = session.get(Attempt, attempt.parent_id) if attempt.parent_id else None
    return found[::-1]


def curves(session: Session, job_id: str, keys: Sequence[str] | None = None) -> dict[str, Curve]:
    """The job's curves by key: the newest attempt's, and what it continues up to where it resumed.

    Points that a lost attempt made after its last checkpoint are not shown twice, but stay in the database.
    """
    pieces: list[Piece] = []
    for attempt, cut in lineage(session, job_id):
        query = select(MetricChunk).where(MetricChunk.attempt_id == attempt.id)
        if cut is not None:
            query = query.where(MetricChunk.first_step <= cut)
        if keys is not None:  # chunks without any of them, often most, are not even read
            names = cast(MetricChunk.keys, Text)
            query = query.where(or_(*(names.contains(json.dumps(key), autoescape=True) for key in keys)))
        chunks = session.scalars(query.order_by(MetricChunk.seq))
        pieces.extend(Piece(tuple(chunk.keys), chunk.steps, chunk.values, cut) for chunk in chunks)
    return assemble(pieces, keys)


def keys_of(session: Session, job_id: str) -> list[str]:
    """The keys of all the job's curves, sorted."""
    own = [attempt.id for attempt, _ in lineage(session, job_id)]
    found = session.scalars(select(MetricChunk.keys).where(MetricChunk.attempt_id.in_(own)))
    return sorted({key for keys in found for key in keys})
