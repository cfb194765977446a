"""A job's log as its owner reads it: the lines of all its attempts, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from texelgrad.models import Attempt, LogLine

Position = tuple[int, int]  # number of the attempt within the job, number of the line within the attempt


def log_lines(
    session: Session, job_id: str, after: Position, limit: int, level: str | None = None
) -> Sequence[tuple[int, LogLine]]:
    """At most `limit` lines past a position, each with the number of its attempt; of one level or of all."""
    number, seq = after
    query = (
        select(Attempt.number, LogLine)
        .join(Attempt, Attempt.id == LogLine.attempt_id)
        .where(Attempt.job_id == job_id)
        .where(or_(Attempt.number > number, (Attempt.number == number) & (LogLine.seq > seq)))
    )
    if level is not None:
        query = query.where(LogLine.level == level)
    rows = session.execute(query.order_by(Attempt.number, LogLine.seq).limit(limit))
    return [(row[0], row[1]) for row in rows]
