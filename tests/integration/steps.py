"""What many tests do first: queue a job, claim it, bring its attempt to an end."""

from __future__ import annotations

import struct
from typing import Any

from texelgrad import artifacts, repository
from texelgrad.db import Database
from texelgrad.domain import AttemptState, Cause, JobState
from texelgrad.repository import Claim
from texelgrad.spec import parse_spec

OWNER = "local"
SPEC: dict[str, Any] = {
    "name": "points",
    "model": {"input": [2], "layers": [{"type": "dense", "units": 4}, {"type": "dense", "units": 1}]},
    "loss": "bce",
    "optimizer": {"type": "sgd", "lr": 0.1},
    "train": {"steps": 20},
}


def queue_job(db: Database, queue: str = "gpu", **options: Any) -> str:
    """A new job's id; `options` are create_job's, or the spec's `max_attempts`."""
    spec = parse_spec({**SPEC, "limits": {"max_attempts": options.pop("max_attempts", 3)}})
    with db.write() as session:
        dataset_id = options.pop("dataset_id", None)
        return repository.create_job(
            session, OWNER, spec.model_dump(), queue=queue, dataset_id=dataset_id, **options
        ).id


def try_claim(db: Database, worker: str = "w1", queue: str = "gpu", lease_s: float = 15) -> Claim | None:
    """Claim the next job, if there is one."""
    with db.write() as session:
        return repository.claim_next(session, queue, worker, lease_s)


def claim(db: Database, worker: str = "w1", lease_s: float = 15) -> Claim:
    """Claim the next job, which must be there."""
    claimed = try_claim(db, worker, lease_s=lease_s)
    assert claimed is not None
    return claimed


def advance(db: Database, claimed: Claim, *states: str) -> None:
    """Take the attempt through states."""
    for state in states:
        with db.write() as session:
            repository.advance_attempt(session, claimed.attempt_id, claimed.token, AttemptState(state))


def finish(db: Database, claimed: Claim, outcome: str, cause: str, message: str | None = None) -> JobState:
    """End the attempt."""
    with db.write() as session:
        return repository.finish_attempt(
            session, claimed.attempt_id, claimed.token, AttemptState(outcome), Cause(cause), message
        )


def write_artifact(db: Database, claimed: Claim, kind: str, data: bytes, step: int | None = None) -> str:
    """Store a whole artifact of the attempt."""
    writer = artifacts.open_writer(db, claimed.owner_id, claimed.attempt_id, claimed.token, kind, step)
    writer.append(data)
    return writer.commit()


def add_points(db: Database, claimed: Claim, points: list[tuple[int, float]], key: str = "loss") -> None:
    """Append points of one curve."""
    steps = struct.pack(f"<{len(points)}I", *(step for step, _ in points))
    values = struct.pack(f"<{len(points)}d", *(value for _, value in points))
    with db.write() as session:
        repository.append_metrics(
            session, claimed.attempt_id, claimed.token, [key], len(points), steps, values
        )


def succeed(db: Database, claimed: Claim, weights: bytes = b"weights") -> None:
    """Bring a fresh claim to success."""
    advance(db, claimed, "starting", "training", "saving")
    write_artifact(db, claimed, "weights", weights)
    assert finish(db, claimed, "succeeded", "completed") == JobState.SUCCEEDED
