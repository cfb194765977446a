"""From a job spec as somebody sent it to a queued job, or to an estimate of one."""

from __future__ import annotations

from typing import Any

from sqlalchemy.exc import IntegrityError

from texelgrad import repository
from texelgrad.config import Settings
from texelgrad.datasets import NamedArray, normalise
from texelgrad.db import Database
from texelgrad.errors import Fault, Invalid, NotFound
from texelgrad.models import Job
from texelgrad.repository import datasets
from texelgrad.shapes import ArrayInfo, Estimate, data_faults, estimate, limit_faults
from texelgrad.spec import JobSpec, Synthetic, parse_spec
from texelgrad.store import store_dataset

Idempotency = tuple[str, str]  # the key, and the SHA-256 of the request's body


def submit_job(
    db: Database, settings: Settings, owner_id: str, raw: Any, idempotency: Idempotency | None = None
) -> tuple[Job, bool]:
    """Queue a job; answers it, and whether it is new. Raises Invalid with every fault, before anything is stored."""
    if idempotency and (job := _job_of_key(db, owner_id, idempotency)):
        return job, False
    spec = parse_spec(raw)
    infos, synthetic = _check(db, settings, owner_id, spec)
    dataset_id = spec.data.dataset
    if synthetic:
        assert spec.data.synthetic is not None
        dataset_id, _ = store_dataset(db, owner_id, _synthetic_name(spec.data.synthetic), synthetic)
    try:
        with db.write() as session:
            job = repository.create_job(
                session,
                owner_id,
                spec.model_dump(),
                queue=settings.queue,
                dataset_id=dataset_id,
                needs_hardware=spec.allow_software is False,
                total_steps=estimate(spec, infos["x"], infos["y"]).total_steps,
                idempotency=idempotency,
            )
    except IntegrityError:
        # The same key came in twice at once, and the other request was first.
        if idempotency and (job := _job_of_key(db, owner_id, idempotency)):
            return job, False
        raise
    return job, True


def estimate_job(db: Database, settings: Settings, owner_id: str, raw: Any) -> Estimate:
    """What a job would take; raises Invalid as submit_job does."""
    spec = parse_spec(raw)
    infos, _ = _check(db, settings, owner_id, spec)
    return estimate(spec, infos["x"], infos["y"])


def _check(
    db: Database, settings: Settings, owner_id: str, spec: JobSpec
) -> tuple[dict[str, ArrayInfo], list[NamedArray]]:
    """The data's descriptions, and the arrays themselves where they are made up; raises Invalid."""
    faults = list(limit_faults(spec, settings))
    infos: dict[str, ArrayInfo] = {}
    synthetic: list[NamedArray] = []
    if spec.data.synthetic:
        synthetic = _make(spec.data.synthetic)
        infos = {array.name: array.info for array in synthetic}
    elif spec.data.dataset:
        with db.read() as session:
            try:
                datasets.get_dataset(session, owner_id, spec.data.dataset)
                infos = datasets.array_infos(session, spec.data.dataset)
            except NotFound:
                legal = "an id that POST /v1/datasets gave"
                faults.append(Fault("data.dataset", "there is no such data set", spec.data.dataset, legal))
    else:
        faults.append(Fault("data", "needs one of dataset and synthetic", None, "dataset or synthetic"))
    if infos:
        faults.extend(data_faults(spec, infos["x"], infos["y"]))
    if faults:
        raise Invalid(faults)
    return infos, synthetic


def _make(synthetic: Synthetic) -> list[NamedArray]:
    from texelgrad.synthetic import two_class_points

    return normalise(*two_class_points(synthetic.rows, synthetic.seed))


def _synthetic_name(synthetic: Synthetic) -> str:
    return f"{synthetic.kind}, {synthetic.rows} rows, seed {synthetic.seed}"


def _job_of_key(db: Database, owner_id: str, idempotency: Idempotency) -> Job | None:
    """The job that this key made; raises Invalid where it was for another body."""
    key, body_sha256 = idempotency
    with db.read() as session:
        found = repository.find_idempotent(session, owner_id, key)
        if found is None:
            return None
        if found.body_sha256 != body_sha256:
            raise Invalid(
                [Fault("Idempotency-Key", "was used for another body", key, "a new key, or the same body")]
            )
        return repository.get_job(session, owner_id, found.job_id)
