"""Predictions with a trained job's weights: a job of its own, and the file that it makes."""

from __future__ import annotations

from flask import Response, request

from api.bodies import read_json
from api.context import services
from api.files import send_artifact
from api.jobs import accepted, idempotency
from api.models import JobPath, PredictionsQuery
from api.routing import Routes
from texelgrad import repository
from texelgrad.domain import FINAL_JOB_STATES, JobState
from texelgrad.errors import Conflict, NotFound
from texelgrad.exports import predictions_artifact
from texelgrad.submit import submit_predictions

routes = Routes("predictions")


@routes.post("/jobs/<job_id>/predictions", "Predict with a job's weights")
def predict(path: JobPath) -> Response:
    """202 and a new job that computes the model's outputs for the rows of `{"dataset", "name", "tags"}`."""
    own = services()
    body = read_json(own.settings.max_spec_bytes, "TEXELGRAD_MAX_SPEC_BYTES")
    with own.db.read() as session:
        job = repository.get_job(session, own.owner_id, path.job_id)
    key = idempotency(path, request.get_data())
    return accepted(*submit_predictions(own.db, own.settings, own.owner_id, job, body, key, own.quota))


@routes.get("/jobs/<job_id>/predictions", "Predictions that a job made")
def get_predictions(path: JobPath, query: PredictionsQuery) -> Response:
    """The file, or the range asked for; 409 while the job may still make them, 404 where it never will."""
    own = services()
    with own.db.read() as session:
        job = repository.get_job(session, own.owner_id, path.job_id)
        attempt = repository.current_attempt(session, job.id)
    if job.spec.get("predict") is None:
        raise NotFound(f"job {job.id} trains: POST to this address makes a job that predicts")
    if job.state not in FINAL_JOB_STATES:
        raise Conflict(f"job {job.id} is {job.state} and has no predictions yet")
    if job.state != JobState.SUCCEEDED or attempt is None:
        raise NotFound(f"job {job.id} is {job.state} and has no predictions")
    artifact = predictions_artifact(own.db, attempt.id, job.spec, query.format)
    return send_artifact(own.db, artifact, f"{job.id}.predictions.{query.format}")
