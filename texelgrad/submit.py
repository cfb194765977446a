"""From a job spec as somebody sent it to a queued job, or to an estimate of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from texelgrad import repository
from texelgrad.check import check_job
from texelgrad.config import Settings
from texelgrad.db import Database, now_us
from texelgrad.domain import FINAL_JOB_STATES, JobState
from texelgrad.errors import Conflict, Fault, Invalid
from texelgrad.initial_weights import hold_weights
from texelgrad.models import Job
from texelgrad.quota import UNLIMITED, Quota, check_disk, check_jobs
from texelgrad.repository import datasets
from texelgrad.repository.attempts import last_checkpoint
from texelgrad.repository.locks import lock_job
from texelgrad.shapes import Estimate, estimate, total_steps
from texelgrad.store import store_dataset
from texelgrad.times import time_text

Idempotency = tuple[str, str]  # the key, and the SHA-256 of the request's body


def submit_job(
    db: Database,
    settings: Settings,
    owner_id: str,
    raw: Any,
    idempotency: Idempotency | None = None,
    quota: Quota = UNLIMITED,
) -> tuple[Job, bool]:
    """Queue a job; answers it, and whether it is new.

    Raises Invalid with every fault before anything is stored, TooMany, or Overloaded.
    """
    with db.read() as session:
        if idempotency and (job := _job_of_key(session, owner_id, idempotency)):
            return job, False
        checked = check_job(session, settings, owner_id, raw)
        spec, made = checked.spec, checked.synthetic
        same = datasets.find_same(session, owner_id, made.sha256) if made else None
    dataset_id = same or spec.data.dataset
    if made and not dataset_id:
        dataset_id, _ = store_dataset(db, owner_id, made.name, made.arrays(), quota)
    plain, steps = spec.model_dump(), total_steps(spec, checked.infos)
    check_disk(db, settings)

    def create(session: Session) -> Job:
        check_jobs(session, settings, owner_id, quota)
        if checked.weights_artifact_id:
            hold_weights(session, checked.weights_artifact_id, "predict" if spec.predict else "fine_tune")
        return repository.create_job(
            session,
            owner_id,
            plain,
            queue=settings.queue,
            dataset_id=dataset_id,
            needs_hardware=spec.allow_software is False,
            total_steps=steps,
            deadline_at=checked.deadline_at,
            weights_artifact_id=checked.weights_artifact_id,
            idempotency=idempotency,
        )

    return _once(db, owner_id, idempotency, create)


def submit_predictions(
    db: Database,
    settings: Settings,
    owner_id: str,
    job: Job,
    body: Any,
    idempotency: Idempotency | None = None,
    quota: Quota = UNLIMITED,
) -> tuple[Job, bool]:
    """Queue a job that predicts with the weights of `job`; `body` names the data set. Raises as submit_job does."""
    legal = ("dataset", "name", "tags")
    if not isinstance(body, dict):
        raise Invalid([Fault("(the whole)", "is not an object", body, f"an object with {', '.join(legal)}")])
    fields = cast(dict[str, Any], body)
    faults = [
        Fault(name[:100], "is not a field here", None, f"one of {', '.join(legal)}")
        for name in fields
        if name not in legal
    ]
    if fields.get("dataset") is None:
        faults.append(Fault("dataset", "is missing", None, "an id that POST /v1/datasets gave"))
    if faults:
        raise Invalid(faults)
    if job.spec.get("predict"):
        raise Conflict(f"job {job.id} made predictions and has no weights: name the job that trained")
    if job.state != JobState.SUCCEEDED:
        yet = "" if job.state in FINAL_JOB_STATES else " yet"
        raise Conflict(
            f"job {job.id} is {job.state} and has no weights{yet}: only one that has succeeded predicts"
        )
    old = job.spec
    kept = {name: old[name] for name in ("model", "loss", "optimizer", "backend", "allow_software", "limits")}
    spec = {
        **kept,
        "name": fields.get("name", f"predictions of {old['name'] or job.id}"[:200]),
        "tags": fields.get("tags", old["tags"]),
        "data": {"dataset": fields["dataset"]},
        # Of training only what the schema asks for: no step is taken.
        "train": {"steps": 1, "seed": old["train"]["seed"]},
        "diagnostics": "none",
        "predict": {"job": job.id},
    }
    try:
        return submit_job(db, settings, owner_id, spec, idempotency, quota)
    except Invalid as invalid:  # of a spec that the caller has not written
        faults = [replace(fault, field=fault.field.removeprefix("data.")) for fault in invalid.faults]
        raise Invalid(faults, invalid.more) from invalid


def submit_again(
    db: Database,
    settings: Settings,
    owner_id: str,
    job_id: str,
    idempotency: Idempotency | None = None,
    quota: Quota = UNLIMITED,
    *,
    resume: bool = False,
) -> tuple[Job, bool]:
    """Queue a new job of the spec of one that has ended; with `resume` it starts from that one's last checkpoint.

    A deadline is as far away as it was then. Raises NotFound, or Conflict where the old job does not allow it.
    """
    with db.read() as session:
        if idempotency and (job := _job_of_key(session, owner_id, idempotency)):
            return job, False
    check_disk(db, settings)

    def create(session: Session) -> Job:
        old = lock_job(session, job_id, owner_id)
        if old.state not in FINAL_JOB_STATES:
            raise Conflict(f"job {job_id} is {old.state} and has not ended")
        checkpoint = last_checkpoint(session, old) if resume else None
        if resume and old.state == JobState.SUCCEEDED:
            raise Conflict(f"job {job_id} succeeded: there is nothing left to do")
        if resume and checkpoint is None:
            raise Conflict(f"job {job_id} has no checkpoint to resume from: retry it")
        check_jobs(session, settings, owner_id, quota)
        deadline_at = None
        if old.deadline_at is not None:
            deadline_at = now_us(session) + old.deadline_at - old.created_at
        return repository.create_job(
            session,
            owner_id,
            {**old.spec, "deadline": time_text(deadline_at)},
            queue=settings.queue,
            dataset_id=old.dataset_id,
            needs_hardware=old.needs_hardware,
            parent_id=old.id,
            resume_artifact_id=checkpoint.id if checkpoint else None,
            weights_artifact_id=old.weights_artifact_id,
            total_steps=old.total_steps,
            deadline_at=deadline_at,
            idempotency=idempotency,
        )

    return _once(db, owner_id, idempotency, create)


def _once(
    db: Database, owner_id: str, idempotency: Idempotency | None, create: Callable[[Session], Job]
) -> tuple[Job, bool]:
    """Create a job in a transaction of its own, or answer the one that the same key has made meanwhile."""
    try:
        with db.write() as session:
            return create(session), True
    except IntegrityError:
        # The same key came in twice at once, and the other request was first.
        with db.read() as session:
            if idempotency and (job := _job_of_key(session, owner_id, idempotency)):
                return job, False
        raise


def estimate_job(db: Database, settings: Settings, owner_id: str, raw: Any) -> Estimate:
    """What a job would take; raises Invalid as submit_job does."""
    with db.read() as session:
        checked = check_job(session, settings, owner_id, raw)
    return estimate(checked.spec, checked.infos)


def _job_of_key(session: Session, owner_id: str, idempotency: Idempotency) -> Job | None:
    """The job that this key made; raises Invalid where it was for another body."""
    key, body_sha256 = idempotency
    found = repository.find_idempotent(session, owner_id, key)
    if found is None:
        return None
    made_of, job_id = found
    if made_of != body_sha256:
        raise Invalid(
            [Fault("Idempotency-Key", "was used for another body", key, "a new key, or the same body")]
        )
    return repository.get_job(session, owner_id, job_id)
