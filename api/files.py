"""Weights as files, out and in: whole or by range, resumable, with the hash of their content as ETag."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO, cast

from flask import Response, request

from api.bodies import too_large
from api.context import services
from api.models import JobPath, WeightsQuery
from api.responses import json_response
from api.routing import Routes
from texelgrad import artifacts, repository
from texelgrad.db import Database
from texelgrad.domain import FINAL_JOB_STATES, JobState
from texelgrad.errors import Conflict, NotFound
from texelgrad.exports import SUFFIXES, weights_artifact
from texelgrad.initial_weights import store_weights
from texelgrad.models import CHUNK_BYTES, Artifact
from texelgrad.times import time_text

routes = Routes("files")
_MEMORY_BYTES = 8 << 20
_CHECKED_BYTES = 8 << 20  # files up to this are checked before the answer begins, which can't be taken back


@routes.get("/jobs/<job_id>/weights", "Trained weights of a job")
def get_weights(path: JobPath, query: WeightsQuery) -> Response:
    """The file, or the range asked for; 409 while the job may still make them, 404 where it never will."""
    own = services()
    with own.db.read() as session:
        job = repository.get_job(session, own.owner_id, path.job_id)
        attempt = repository.current_attempt(session, job.id)
    if job.state not in FINAL_JOB_STATES:
        raise Conflict(f"job {job.id} is {job.state} and has no weights yet")
    if job.state != JobState.SUCCEEDED or attempt is None:
        raise NotFound(f"job {job.id} is {job.state} and has no weights")
    artifact = weights_artifact(own.db, attempt.id, job.spec, query.format)
    return send_artifact(own.db, artifact, f"{job.id}.{SUFFIXES.get(query.format, query.format)}")


@routes.post("/weights", "Upload weights to fine-tune from")
def post_weights() -> Response:
    """201 and the id for `fine_tune.weights`; the body is a safetensors file. Kept for a day, and while a job began with it."""
    own = services()
    limit = own.settings.max_upload_bytes
    with tempfile.SpooledTemporaryFile(_MEMORY_BYTES) as spool:
        size = 0
        while piece := request.stream.read(CHUNK_BYTES):
            size += len(piece)
            if size > limit:
                raise too_large(limit, "TEXELGRAD_MAX_UPLOAD_BYTES")
            spool.write(piece)
        file = cast("IO[bytes]", spool)
        artifact, shapes = store_weights(own.db, own.settings, own.owner_id, file, own.quota)
    view = {
        "id": artifact.id,
        "size": artifact.size,
        "sha256": artifact.sha256,
        "tensors": {name: list(shape) for name, shape in shapes.items()},
        "created_at": time_text(artifact.created_at),
    }
    return json_response(view, 201)


def send_artifact(db: Database, artifact: Artifact, filename: str) -> Response:
    """The artifact under RFC 9110: one range, If-Range, If-None-Match.

    Raises Damaged where a small one is; a large one breaks off before its last piece then, where it is asked for as a whole.
    """
    tag = artifact.sha256 or ""
    headers = {
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f'attachment; filename="{filename}"',
    }
    start, stop, status = 0, artifact.size, 200
    if request.if_none_match.contains(tag):
        response = Response(status=304, headers=headers)
        response.set_etag(tag)
        return response
    asked = request.range
    unchanged = request.if_range.etag in (None, tag) and request.if_range.date is None
    if asked is not None and asked.units == "bytes" and len(asked.ranges) == 1 and unchanged:
        found = asked.range_for_length(artifact.size)
        if found is None:
            headers["Content-Range"] = f"bytes */{artifact.size}"
            return Response(status=416, headers=headers)
        start, stop = found
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{artifact.size}"
        status = 206
    if artifact.size <= _CHECKED_BYTES:
        with db.read() as session:
            artifacts.check_intact(session, artifact.id)
    body = _pieces(db, artifact, start, stop)
    response = Response(body, status, headers, mimetype="application/octet-stream", direct_passthrough=True)
    response.content_length = stop - start
    response.set_etag(tag)
    return response


def _pieces(db: Database, artifact: Artifact, start: int, stop: int) -> Iterator[bytes]:
    """The bytes, each piece read in a transaction of its own: a slow reader must not hold a snapshot open. Raises Damaged."""
    check = artifacts.Check(artifact)
    while start < stop:
        end = min(stop, start + artifact.chunk_size)
        with db.read() as session:
            piece = b"".join(artifacts.open_range(session, artifact.id, start, end))
        check.take(start, piece)
        yield piece
        start = end
