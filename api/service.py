"""What the service says of itself: estimates, workers, health."""

from __future__ import annotations

import time

from flask import Flask, Response, request
from sqlalchemy import text

from api.auth import caller
from api.bodies import read_json
from api.context import services
from api.models import WorkersQuery
from api.paging import page
from api.problems import problem
from api.responses import json_response
from api.routing import Routes
from api.views import worker_view
from texelgrad import repository
from texelgrad.db import Database, now_us, revisions
from texelgrad.keys import Role
from texelgrad.repository.gauges import last_training_us
from texelgrad.submit import estimate_job

routes = Routes("service")
_PROOF_US = 600 * 1_000_000
_WORKERS_US = 24 * 3600 * 1_000_000  # how long a worker that is silent is listed


@routes.post("/estimates", "What a job would take")
def post_estimate() -> Response:
    """Parameters, steps, operations and memory of a spec that is not queued; 422 as for POST /v1/jobs."""
    own = services()
    raw = read_json(own.settings.max_spec_bytes, "TEXELGRAD_MAX_SPEC_BYTES")
    return json_response(estimate_job(own.db, own.settings, own.owner_id, raw).as_dict())


@routes.get("/workers", "List workers")
def list_workers(query: WorkersQuery) -> Response:
    """Workers that were seen in the last day, with the device that each has proved."""
    own = services()
    with own.db.read() as session:
        found = repository.list_workers(
            session,
            time.time_ns() // 1000 - _WORKERS_US,
            limit=query.limit + 1,
            after=query.cursor,
            queue=query.queue,
            state=query.state,
        )
    admin = caller().role == Role.ADMIN
    listed = page(
        found, query.limit, lambda worker: worker_view(worker, whole=admin), lambda worker: worker.id
    )
    return json_response(listed)


def register_health(app: Flask) -> None:
    """Add /healthz (this process answers) and /readyz (and its database is there and migrated)."""

    @app.route("/healthz")
    def healthz() -> Response:  # pyright: ignore[reportUnusedFunction]
        """200 as soon as the process answers."""
        return json_response({"status": "ok"})

    @app.route("/readyz")
    def readyz() -> Response:  # pyright: ignore[reportUnusedFunction]
        """200 where jobs can be taken, with `?deep=1` also lately trained; 503 says what is missing."""
        db = services().db
        try:
            with db.read() as session:
                session.execute(text("SELECT 1"))
            current, head = revisions(db)
        except Exception as error:  # noqa: BLE001 - any failure means the same here
            return problem(503, "unavailable", "The database does not answer", type(error).__name__)
        if current != head:
            detail = f"The schema is at {current}, this code needs {head}: run `texelgrad migrate`."
            return problem(503, "not_migrated", "The database is not migrated", detail)
        if request.args.get("deep") == "1":
            return _trains(db) or json_response({"status": "ok", "revision": current, "trains": True})
        return json_response({"status": "ok", "revision": current})


def _trains(db: Database) -> Response | None:
    """None where some worker trained, or proved that it can, within the last ten minutes; else why not."""
    with db.read() as session:
        last, now = last_training_us(session), now_us(session)
    if last is not None and now - last <= _PROOF_US:
        return None
    when = f"The last was {(now - last) / 60e6:.0f} minutes ago." if last else "None ever did."
    detail = f"No worker has trained, or proved that it can, within the last 10 minutes. {when}"
    return problem(503, "not_training", "No worker trains", detail)
