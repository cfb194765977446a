"""What can be asked of one job besides its curves: its checkpoints, its log, and why it is where it is."""

from __future__ import annotations

from flask import Response

from api.context import services
from api.files import send_artifact
from api.models import CheckpointPath, JobPath, LogsQuery
from api.paging import bad_cursor, page
from api.responses import json_response, tagged_response
from api.routing import Routes
from api.views import checkpoint_view, log_view
from texelgrad import repository
from texelgrad.repository import facts, lineage, logs
from texelgrad.repository.checkpoints import ready_checkpoints
from texelgrad.why import explain

routes = Routes("inspection")
_MAX_DIGITS = 15  # of a number in a cursor; more than any database counts


@routes.get("/jobs/<job_id>/checkpoints", "Checkpoints of a job")
def list_checkpoints(path: JobPath) -> Response:
    """What the job's attempts saved on the way, the furthest first; there are few, so all come at once."""
    own = services()
    with own.db.read() as session:
        job = repository.get_job(session, own.owner_id, path.job_id)
        found = ready_checkpoints(session, job.id)
        items = [checkpoint_view(job.id, artifact) for artifact in found]
    return tagged_response({"items": items, "next_cursor": None})


@routes.get("/jobs/<job_id>/checkpoints/<artifact_id>", "One checkpoint's file")
def get_checkpoint(path: CheckpointPath) -> Response:
    """The safetensors file, or the range asked for."""
    own = services()
    with own.db.read() as session:
        job = repository.get_job(session, own.owner_id, path.job_id)
        artifact = lineage.get_checkpoint(session, job.id, path.artifact_id)
    return send_artifact(own.db, artifact, f"{job.id}-{artifact.step}.safetensors")


@routes.get("/jobs/<job_id>/logs", "Log of a job")
def get_logs(path: JobPath, query: LogsQuery) -> Response:
    """Lines of the page's console and of the worker, oldest first, of all attempts."""
    own = services()
    after = _position(query.cursor)
    with own.db.read() as session:
        job = repository.get_job(session, own.owner_id, path.job_id)
        found = logs.log_lines(session, job.id, after, query.limit + 1, query.level)
    return json_response(page(found, query.limit, log_view, lambda row: f"{row[0]}.{row[1].seq}"))


@routes.get("/jobs/<job_id>/why", "Why a job is not running, or why it ended")
def get_why(path: JobPath) -> Response:
    """A summary in one sentence, and every reason with a stable code."""
    own = services()
    with own.db.read() as session:
        job = repository.get_job(session, own.owner_id, path.job_id)
        answer = explain(*facts.facts_of(session, job))
    return json_response({"job_id": job.id, **answer})


def _position(cursor: str | None) -> logs.Position:
    if cursor is None:
        return (0, 0)
    parts = cursor.split(".")
    if len(parts) != 2 or not all(
        part.isascii() and part.isdigit() and len(part) <= _MAX_DIGITS for part in parts
    ):
        raise bad_cursor(cursor)
    return int(parts[0]), int(parts[1])
