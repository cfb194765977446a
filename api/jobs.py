"""Jobs over HTTP: make, list, read, cancel; their curves and precision reports."""

from __future__ import annotations

import hashlib
from typing import Any

from flask import Response, request
from sqlalchemy.orm import Session

from api.bodies import read_json
from api.context import services
from api.models import JobPath, JobsQuery, MetricsQuery
from api.paging import checked_cursor, page
from api.responses import json_response, no_content, tagged_response
from api.routing import Routes
from api.views import job_summary, job_view
from texelgrad import repository
from texelgrad.domain import FINAL_JOB_STATES, IdPrefix, JobState
from texelgrad.errors import Conflict, Fault, Invalid, NotFound
from texelgrad.metrics import downsample
from texelgrad.models import Job
from texelgrad.repository import JobFilter, facts
from texelgrad.repository.jobs import newest_attempts
from texelgrad.repository.lineage import delete_job as remove_job
from texelgrad.repository.lineage import resumable_from_step, resumed_from_steps
from texelgrad.repository.telemetry import keys_of
from texelgrad.submit import Idempotency, submit_again, submit_job
from texelgrad.why import waiting_for

routes = Routes("jobs")
_MAX_KEY = 255  # characters of an Idempotency-Key


@routes.post("/jobs", "Queue a training job")
def post_job() -> Response:
    """Queue a job and answer 202; the spec is checked as a whole before anything is stored."""
    own = services()
    raw = read_json(own.settings.max_spec_bytes, "TEXELGRAD_MAX_SPEC_BYTES")
    return accepted(*submit_job(own.db, own.settings, own.owner_id, raw, idempotency(), own.quota))


@routes.post("/jobs/<job_id>/retry", "Run a job again")
def retry_job(path: JobPath) -> Response:
    """202 and a new job of the same spec, whose parent_id is this one; 409 while this one has not ended."""
    own = services()
    key = idempotency(path)
    return accepted(*submit_again(own.db, own.settings, own.owner_id, path.job_id, key, own.quota))


@routes.post("/jobs/<job_id>/resume", "Go on from a job's last checkpoint")
def resume_job(path: JobPath) -> Response:
    """202 and a new job that starts there; 409 where this one has not ended, has succeeded, or has no checkpoint."""
    own = services()
    key = idempotency(path)
    again = submit_again(own.db, own.settings, own.owner_id, path.job_id, key, own.quota, resume=True)
    return accepted(*again)


def idempotency(path: JobPath | None = None, body: bytes = b"") -> Idempotency | None:
    """The request's key, and a hash of all that it asks for; raises Invalid."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not (1 <= len(key) <= _MAX_KEY and key.isprintable()):
        raise Invalid(
            [Fault("Idempotency-Key", "has a wrong length or characters", None, f"1 to {_MAX_KEY} printable")]
        )
    asked = request.path.encode() + body if path else request.get_data()
    return key, hashlib.sha256(asked).hexdigest()


def accepted(job: Job, new: bool) -> Response:
    """The answer to a request that queued a job, or that an earlier one of the same key did."""
    own = services()
    if new:
        own.hints.send(job.queue)
    with own.db.read() as session:
        view = _view(session, job)
    return json_response(view, 202, Location=f"/v1/jobs/{job.id}", Retry_After="1")


def _view(session: Session, job: Job) -> dict[str, Any]:
    """The job with all that is known of it."""
    attempts = repository.attempts_of(session, job.id)
    return job_view(
        job,
        attempts,
        _lacks(session, job),
        resumed_from_step=resumed_from_steps(session, [job]).get(job.id),
        resumable_from_step=resumable_from_step(session, job),
    )


def _lacks(session: Session, job: Job) -> dict[str, str] | None:
    """What a queued job lacks where nobody can take it."""
    if job.state != JobState.QUEUED:
        return None
    return waiting_for(job.queue, job.needs_hardware, facts.workers_of(session, job.queue))


@routes.get("/jobs", "List jobs, the newest first")
def list_jobs(query: JobsQuery) -> Response:
    """A page of jobs; `next_cursor` leads to the next one."""
    own = services()
    cursor = checked_cursor(query.cursor, IdPrefix.JOB)
    tags: list[tuple[str, str]] = []
    for tag in query.tag:
        name, colon, value = tag.partition(":")
        if not colon:
            raise Invalid([Fault("tag", "is no tag", tag, "name:value")])
        tags.append((name, value))
    filters = JobFilter(query.status, query.name, query.dataset, query.parent, tags)
    with own.db.read() as session:
        found = repository.list_jobs(session, own.owner_id, filters, query.limit + 1, cursor)
        newest = newest_attempts(session, [job.id for job in found])
        begun = resumed_from_steps(session, found)

    def summary(job: Job) -> dict[str, Any]:
        return job_summary(job, newest.get(job.id), begun.get(job.id))

    return json_response(page(found, query.limit, summary, lambda job: job.id))


@routes.get("/jobs/<job_id>", "Read a job")
def get_job(path: JobPath) -> Response:
    """All that is known of the job; poll with If-None-Match, or listen to its events."""
    own = services()
    with own.db.read() as session:
        job = repository.get_job(session, own.owner_id, path.job_id)
        view = _view(session, job)
    final = job.state in FINAL_JOB_STATES
    return tagged_response(view) if final else tagged_response(view, Retry_After="1")


@routes.post("/jobs/<job_id>/cancel", "Cancel a job")
def cancel_job(path: JobPath) -> Response:
    """A queued job is cancelled at once, a running one within a second or two; 409 where it has ended otherwise."""
    own = services()
    with own.db.write() as session:
        job = repository.request_cancel(session, own.owner_id, path.job_id)
        view = _view(session, job)
    return json_response(view, 202)


@routes.delete("/jobs/<job_id>", "Delete a job")
def delete_job(path: JobPath) -> Response:
    """204, with its curves, weights and checkpoints; 409 while it has not ended, or another job continues it."""
    own = services()
    with own.db.write() as session:
        remove_job(session, own.owner_id, path.job_id)
    return no_content()


@routes.get("/jobs/<job_id>/metrics", "Curves of a job")
def get_metrics(path: JobPath, query: MetricsQuery) -> Response:
    """Points by key, thinned to `max_points` without losing spikes; `total` says how many there are."""
    own = services()
    keys = None if query.keys is None else [key.strip() for key in query.keys.split(",") if key.strip()]
    with own.db.read() as session:
        job = repository.get_job(session, own.owner_id, path.job_id)
        curves = repository.curves(session, job.id, keys)
        if keys is not None and not set(keys) <= set(curves):
            known = keys_of(session, job.id)
            # Before a job's first points nobody knows which keys there will be.
            wrong = [key for key in keys if key not in known] if known else []
            if wrong:
                legal = ", ".join(known)
                raise Invalid(
                    [Fault("keys", f"{key[:100]}: there is no such curve", key[:100], legal) for key in wrong]
                )
    series: dict[str, Any] = {}
    for key, curve in sorted(curves.items()):
        thin = downsample(curve, query.max_points)
        series[key] = {
            "steps": thin.steps.tolist(),
            "values": thin.values.tolist(),
            "total": len(curve.steps),
        }
    return tagged_response({"job_id": job.id, "state": job.state, "series": series})


@routes.get("/jobs/<job_id>/diagnostics", "Precision report of a job's device")
def get_diagnostics(path: JobPath) -> Response:
    """The report of the newest attempt that made one; 404 where the job asked for none, 409 while it may come."""
    own = services()
    with own.db.read() as session:
        job = repository.get_job(session, own.owner_id, path.job_id)
        attempts = repository.attempts_of(session, job.id)
    for attempt in reversed(attempts):
        if attempt.diagnostics is not None:
            return tagged_response({**attempt.diagnostics, "attempt_id": attempt.id})
    if job.state in FINAL_JOB_STATES or job.spec["diagnostics"] == "none":
        raise NotFound(f"job {job.id} has no diagnostics")
    raise Conflict(f"job {job.id} is {job.state} and has no diagnostics yet")
