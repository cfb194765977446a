"""A job's log: lines are appended to its attempts, and its owner reads those of all of them, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from texelgrad.db import now_us
from texelgrad.models import Attempt, LogLine
from texelgrad.repository.locks import lock_attempt

_MAX_MESSAGE = 4096  # characters of a line

Position = tuple[int, int]  # number of the attempt within the job, number of the line within the attempt


def append_log(session: Session, attempt_id: str, token: str, level: str, message: str) -> None:
    """Append a line to the attempt's log, cut to 4,096 characters. Raises Fenced."""
    write_line(session, lock_attempt(session, attempt_id, token), level, message)


def write_line(session: Session, attempt: Attempt, level: str, message: str) -> None:
    """The same for an attempt that is locked already, and may have ended."""
    last = session.scalar(select(func.max(LogLine.seq)).where(LogLine.attempt_id == attempt.id)) or 0
    text = message.replace("\0", "\N{REPLACEMENT CHARACTER}")[:_MAX_MESSAGE]  # PostgreSQL has no NUL in text
    session.add(LogLine(attempt_id=attempt.id, seq=last + 1, at=now_us(session), level=level, message=text))
    session.flush()


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
