"""A job's life as server-sent events: state changes, points of its curves, progress.

An event's id is "<event number>" or, at a point of a curve, "<event number>.<attempt>.<metric chunk number>": what a
browser sends back as Last-Event-ID says exactly what it has seen, so nothing is lost or doubled.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from flask import Response, request
from sqlalchemy.orm import Session

from api.context import services
from api.models import EventsQuery, JobPath
from api.responses import no_content
from api.routing import Routes
from texelgrad import repository
from texelgrad.db import Database
from texelgrad.domain import FINAL_JOB_STATES, LIVE_ATTEMPT_STATES, IdPrefix, is_id
from texelgrad.errors import Fault, Invalid, NotFound, Unavailable
from texelgrad.jsonable import jsonable
from texelgrad.metrics import Piece
from texelgrad.models import Attempt, MetricChunk
from texelgrad.repository.telemetry import lineage
from texelgrad.times import time_text

routes = Routes("streams")
_POLL_S = 0.2
_KEEPALIVE_S = 10.0  # a comment this often finds out that the reader has gone


class Limit:
    """How many streams this process serves at once; each holds one of its threads."""

    def __init__(self, streams: int) -> None:
        self._free = threading.Semaphore(streams)

    def take(self) -> None:
        """Take a place; raises Unavailable where all are taken."""
        if not self._free.acquire(blocking=False):
            raise Unavailable("Too many event streams are open; poll the job instead, or try again.")

    def give(self) -> None:
        """Give a place back."""
        self._free.release()


@dataclass(frozen=True)
class Cursor:
    """What a reader has seen: the job's events up to `seq`, and of an attempt's metric chunks those up to `chunk`."""

    seq: int = 0
    attempt_id: str = ""
    chunk: int = 0

    @classmethod
    def parse(cls, text: str | None, field: str) -> Cursor:
        """The cursor that an event id stands for; raises Invalid, which names the `field` that it came in."""
        if not text:
            return cls()
        seq, *rest = text.split(".")
        if seq.isdecimal() and not rest:
            return cls(int(seq))
        if seq.isdecimal() and len(rest) == 2 and is_id(rest[0], IdPrefix.ATTEMPT) and rest[1].isdecimal():
            return cls(int(seq), rest[0], int(rest[1]))
        raise Invalid([Fault(field, "is no event id", text, "an id of this stream")])

    def __str__(self) -> str:
        return f"{self.seq}.{self.attempt_id}.{self.chunk}" if self.attempt_id else str(self.seq)


@routes.get("/jobs/<job_id>/events", "Events of a job as they come")
def get_events(path: JobPath, query: EventsQuery) -> Response:
    """text/event-stream, to go on with Last-Event-ID; 204, which ends a browser's retries, where nothing can follow."""
    own = services()
    header = request.headers.get("Last-Event-ID")
    cursor = Cursor.parse(header, "Last-Event-ID") if header else Cursor.parse(query.after, "after")
    with own.db.read() as session:
        job = repository.get_job(session, own.owner_id, path.job_id)
    if job.state in FINAL_JOB_STATES and cursor.seq >= job.event_seq:
        return no_content()
    own.streams.take()
    response = Response(stream(own.db, own.owner_id, job.id, cursor), mimetype="text/event-stream")
    response.headers["X-Accel-Buffering"] = "no"
    response.call_on_close(own.streams.give)
    return response


def stream(db: Database, owner_id: str, job_id: str, cursor: Cursor) -> Iterator[str]:
    """Messages until the job's final event has been sent."""
    yield "retry: 1000\n\n"
    step, quiet_since = -1, time.monotonic()
    while True:
        messages, cursor, step, final = _news(db, owner_id, job_id, cursor, step)
        if messages:
            yield "".join(messages)
            quiet_since = time.monotonic()
        if final:
            return
        if time.monotonic() - quiet_since > _KEEPALIVE_S:
            yield ": still here\n\n"
            quiet_since = time.monotonic()
        time.sleep(_POLL_S)


def _news(
    db: Database, owner_id: str, job_id: str, cursor: Cursor, step: int
) -> tuple[list[str], Cursor, int, bool]:
    """What happened since the cursor, the new cursor, the job's step, and whether nothing can follow.

    An attempt's points come before its end: what a job measured is on its way before it is said to have ended. What it
    resumed from comes first of all, so that whoever listens from the start has the whole curve.
    """
    news = _News(cursor)
    with db.read() as session:
        try:
            job = repository.get_job(session, owner_id, job_id)
        except NotFound:
            return [_message("deleted", {}, cursor)], cursor, step, True
        pending = [item for item in lineage(session, job_id) if item[0].id >= cursor.attempt_id]
        while pending and pending[0][0].job_id != job_id:
            news.add_points(session, *pending.pop(0))
        progress = {"step": job.step, "total_steps": job.total_steps, "metrics": job.last_metrics}
        final = job.state in FINAL_JOB_STATES
        for event in repository.events_after(session, job_id, cursor.seq):
            ended = event.type == "attempt" and event.data["state"] not in LIVE_ATTEMPT_STATES
            while ended and pending and pending[0][0].id <= event.data["attempt_id"]:
                news.add_points(session, *pending.pop(0))
            if final and event.seq == job.event_seq and job.step != step:
                news.add("progress", progress)
            news.cursor = replace(news.cursor, seq=event.seq)
            news.add(event.type, {**event.data, "at": time_text(event.at)})
        for item in pending:
            news.add_points(session, *item)
        if not final and job.step != step:
            news.add("progress", progress)
    return news.messages, news.cursor, job.step, final and news.cursor.seq >= job.event_seq


class _News:
    """Messages as they are put together, and the cursor behind the last of them."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.messages: list[str] = []

    def add(self, kind: str, data: dict[str, Any]) -> None:
        """Append a message."""
        self.messages.append(_message(kind, data, self.cursor))

    def add_points(self, session: Session, attempt: Attempt, cut: int | None) -> None:
        """Append the attempt's points that the reader has not seen, up to step `cut`."""
        if attempt.id != self.cursor.attempt_id:
            self.cursor = replace(self.cursor, attempt_id=attempt.id, chunk=0)
        while chunks := repository.chunks_after(session, attempt.id, self.cursor.chunk):
            for chunk in chunks:
                self.cursor = replace(self.cursor, chunk=chunk.seq)
                points = _points(chunk, attempt.resumed_from_step, cut)
                if points["steps"]:
                    self.add("metrics", points)


def _points(chunk: MetricChunk, resumed_from_step: int | None, cut: int | None) -> dict[str, Any]:
    """A metric chunk up to step `cut` as JSON: `values` has a list for each key."""
    steps, values = Piece(tuple(chunk.keys), chunk.steps, chunk.values, cut).decode()
    return {
        "attempt_id": chunk.attempt_id,
        "resumed_from_step": resumed_from_step,
        "steps": steps.tolist(),
        "values": {key: values[:, column].tolist() for column, key in enumerate(chunk.keys)},
    }


def _message(kind: str, data: dict[str, Any], cursor: Cursor) -> str:
    text = json.dumps(jsonable(data), separators=(",", ":"), allow_nan=False)
    return f"id: {cursor}\nevent: {kind}\ndata: {text}\n\n"
