"""What the page sends, as rows: states on the way, progress, artifacts, and what the supervisor hears when it goes wrong."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from texelgrad import artifacts, repository
from texelgrad.datasets import normalise
from texelgrad.db import Database
from texelgrad.errors import Damaged, Fenced
from texelgrad.models import Artifact, ArtifactChunk, Attempt, Job
from texelgrad.repository import Claim, logs
from texelgrad.store import store_dataset
from worker.port import Metrics
from worker.recorder import Recorder

from .steps import OWNER, advance, claim, finish, queue_job, write_artifact

X = np.arange(12, dtype=np.float32).reshape(6, 2)
Y = np.array([0, 1, 1, 0, 1, 0], np.int32)


class Events:
    """What the supervisor hears."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def __call__(self, event: str, **fields: Any) -> None:
        self.seen.append({"event": event, **fields})

    def last(self) -> dict[str, Any]:
        """Ignoring signs of life."""
        return [event for event in self.seen if event["event"] != "progress"][-1]


@pytest.fixture
def events() -> Events:
    """A supervisor that only listens."""
    return Events()


@pytest.fixture
def claimed(db: Database) -> Claim:
    """An attempt with six rows of data that has started."""
    dataset_id, _ = store_dataset(db, OWNER, "six", normalise(X, Y))
    queue_job(db, dataset_id=dataset_id)
    started = claim(db)
    advance(db, started, "starting")
    return started


@pytest.fixture
def recorder(db: Database, claimed: Claim, events: Events) -> Recorder:
    """A recorder that serves the attempt."""
    recorder = Recorder(db, events, allow_software=True)
    recorder.begin(claimed)
    return recorder


def _attempt(db: Database, claimed: Claim) -> Attempt:
    with db.read() as session:
        return session.get_one(Attempt, claimed.attempt_id)


def _points(step: int, loss: float) -> Metrics:
    return Metrics(("loss",), 1, struct.pack("<I", step), struct.pack("<d", loss), step, 20)


def test_before_the_claim_there_is_no_job(db: Database, events: Events):
    recorder = Recorder(db, events, allow_software=True)
    assert recorder.job() is None
    with pytest.raises(KeyError):
        recorder.data_size("x")


def test_the_job_and_its_data(recorder: Recorder, claimed: Claim):
    """The document of the protocol, and each array's own bytes, whole or in part."""
    job = recorder.job()
    assert job is not None
    assert (job["job_id"], job["resume"], job["allow_software"]) == (claimed.job_id, None, True)
    assert job["data"]["inputs"] == {"x": {"shape": [6, 2], "dtype": "float32", "url": "data/x"}}
    assert list(job["data"]["targets"]) == ["y"]
    size = recorder.data_size("x")
    assert b"".join(recorder.open_data("x", 0, size)) == X.tobytes()
    assert b"".join(recorder.open_data("x", 5, 17)) == X.tobytes()[5:17]
    with pytest.raises(KeyError):
        recorder.open_resume()


def test_damaged_weights_are_not_begun_with(db: Database, claimed: Claim, events: Events):
    """They are handed out as long as they are what was stored; then the attempt fails, and says why."""
    weights = artifacts.write_pieces(db, OWNER, "uploaded_weights", [b"weights"])
    recorder = Recorder(db, events, allow_software=True)
    recorder.begin(replace(claimed, weights_artifact_id=weights))
    assert b"".join(recorder.open_initial()) == b"weights"
    with db.write() as session:
        session.execute(
            update(ArtifactChunk).where(ArtifactChunk.artifact_id == weights).values(data=b"WEIGHTS")
        )
    with pytest.raises(KeyError):
        recorder.open_initial()
    assert (events.last()["event"], events.last()["code"]) == ("failed", "weights_damaged")
    assert weights in events.last()["message"]


def test_damaged_data_are_not_trained_on(db: Database, recorder: Recorder, claimed: Claim, events: Events):
    """Read in windows, the last of an array is kept back; an array that is what was stored may be read again and again."""
    with db.write() as session:
        x = {array.name: array.artifact_id for array in claimed.data}["x"]
        damage = X.tobytes()[:20] + b"?" + X.tobytes()[21:]
        session.execute(update(ArtifactChunk).where(ArtifactChunk.artifact_id == x).values(data=damage))
    for start, end in ((0, 24), (24, 24), (0, 24), (0, 10), (30, 48)):
        assert b"".join(recorder.open_data("x", start, end)) == damage[start:end]
    with pytest.raises(Damaged, match="SHA-256"):
        list(recorder.open_data("x", 24, 48))
    assert (events.last()["event"], events.last()["code"]) == ("failed", "data_damaged")
    assert x in events.last()["message"]
    for start, end in ((0, 8), (8, 24), (0, 24)):
        assert b"".join(recorder.open_data("y", start, end)) == Y.tobytes()[start:end]


def test_points_bring_the_attempt_to_training(db: Database, recorder: Recorder, claimed: Claim):
    """Once, with the first points; the job shows the newest of each key, a NaN among them."""
    recorder.metrics(_points(1, 0.5))
    recorder.metrics(_points(2, float("nan")))
    recorder.metrics(Metrics(("loss",), 0, b"", b"", 3, 20))
    assert _attempt(db, claimed).state == "training"
    with db.read() as session:
        job = session.get_one(Job, claimed.job_id)
        assert (job.step, job.total_steps, job.last_metrics) == (3, 20, {"loss": "NaN"})
        assert repository.curves(session, claimed.job_id)["loss"].steps.tolist() == [1, 2]


def test_a_checkpoint_can_be_resumed_from(db: Database, recorder: Recorder, claimed: Claim, events: Events):
    """It is readable at once, and the next attempt gets exactly its bytes."""
    checkpoint = np.random.default_rng(0).bytes(3 << 20)
    recorder.checkpoint(500, io.BytesIO(checkpoint))
    finish(db, claimed, "lost", "page_crashed")
    following = claim(db)
    recorder = Recorder(db, events, allow_software=True)
    recorder.begin(following)
    job = recorder.job()
    assert job is not None
    assert job["resume"] == {"url": "resume", "step": 500, "measured": False}
    assert b"".join(recorder.open_resume()) == checkpoint


def test_a_whole_run(db: Database, recorder: Recorder, claimed: Claim, events: Events):
    """Diagnostics, log, weights and record are there, and the supervisor may end the attempt as a success."""
    recorder.diagnostics({"float32": True, "worst": float("inf")})
    recorder.log("shouting", "unknown levels count as info")
    recorder.metrics(_points(20, 0.1))
    recorder.weights(io.BytesIO(b"weights"))
    recorder.result({"record": {"backend": "webgl2", "planKey": "k"}, "final": {"step": 20}})
    assert events.last() == {"event": "saved"}
    attempt = _attempt(db, claimed)
    assert attempt.state == "saving"
    assert attempt.diagnostics == {"float32": True, "worst": "Infinity"}
    assert (attempt.backend, attempt.plan_key) == ("webgl2", "k")
    assert finish(db, claimed, "succeeded", "completed") == "succeeded"
    with db.read() as session:
        weights = artifacts.find_ready(session, claimed.attempt_id, "weights")
        assert artifacts.read_all(session, weights.id) == b"weights"


@pytest.mark.parametrize("loss", ["mse", "bce"])
def test_targets_that_are_not_scaled_are_warned_of(db: Database, events: Events, loss: str):
    """By what is stored of the data, beside what the page warns of; only where the loss is of values."""
    dataset_id, _ = store_dataset(db, OWNER, "far", normalise(X, 100.0 + 50 * X[:, 0]))
    job_id = queue_job(db, dataset_id=dataset_id)
    with db.write() as session:
        job = session.get_one(Job, job_id)
        job.spec = {**job.spec, "loss": loss}
    started = claim(db)
    advance(db, started, "starting")
    recorder = Recorder(db, events, allow_software=True)
    recorder.begin(started)
    page = {"code": "weights_not_finite", "message": "3 of 9 weights are NaN or infinite"}
    recorder.result({"record": {"warnings": [page]}, "final": {}})
    first, *others = (_attempt(db, started).record or {})["warnings"]
    assert first == page
    assert [warning["code"] for warning in others] == (["targets_not_scaled"] if loss == "mse" else [])


def test_a_failure_is_passed_on(recorder: Recorder, events: Events):
    recorder.failure(
        {"code": "non_finite_loss", "message": "at step 3", "field": None, "step": 3, "detail": {}}
    )
    assert events.last() == {
        "event": "failed",
        "code": "non_finite_loss",
        "message": "at step 3",
        "failure": {"field": None, "step": 3, "detail": {}},
    }


def test_a_fenced_attempt_writes_nothing(db: Database, recorder: Recorder, claimed: Claim, events: Events):
    """Every write raises, the supervisor hears of it, and no row appears."""
    finish(db, claimed, "lost", "lease_expired")
    for write in (
        lambda: recorder.metrics(_points(1, 0.5)),
        lambda: recorder.checkpoint(1, io.BytesIO(b"x")),
        lambda: recorder.weights(io.BytesIO(b"x")),
        lambda: recorder.diagnostics({}),
        lambda: recorder.log("info", "x"),
        lambda: recorder.result({"record": {}, "final": {}}),
    ):
        events.seen.clear()
        with pytest.raises(Fenced):
            write()
        assert events.last() == {"event": "fenced"}
    with db.read() as session:
        assert repository.curves(session, claimed.job_id) == {}
        assert session.query(Artifact).filter_by(attempt_id=claimed.attempt_id).count() == 0


def test_lines_of_the_page_are_kept(db: Database, recorder: Recorder, claimed: Claim):
    """Of a flood the beginning, and the word that there was more."""
    for number in range(1003):
        recorder.log("error" if number == 1 else "debug", f"line {number}")
    with db.read() as session:
        lines = [line for _, line in logs.log_lines(session, claimed.job_id, (0, 0), 2000)]
    assert len(lines) == 1000
    assert [(line.level, line.message) for line in lines[:2]] == [("debug", "line 0"), ("error", "line 1")]
    assert (lines[-1].level, lines[-1].message) == ("warning", "further lines are not kept")


def test_a_database_that_is_away_costs_the_attempt_not_the_job(
    db: Database, recorder: Recorder, events: Events, monkeypatch: pytest.MonkeyPatch
):
    """The page only sees an error; the supervisor hears that the storage, not the job, failed."""

    def fail(*_: Any) -> Iterator[Any]:
        raise OperationalError("INSERT", {}, Exception("server closed the connection"))

    monkeypatch.setattr(repository, "append_metrics", fail)
    with pytest.raises(OperationalError):
        recorder.metrics(_points(1, 0.5))
    assert events.last()["code"] == "no_storage"
    assert "server closed the connection" in events.last()["message"]


def test_a_resume_after_saving_started(db: Database, claimed: Claim, events: Events):
    """Weights that were complete when an earlier attempt was lost do not count for the next one."""
    write_artifact(db, claimed, "weights", b"old")
    finish(db, claimed, "lost", "runner_died")
    following = claim(db)
    advance(db, following, "starting")
    recorder = Recorder(db, events, allow_software=True)
    recorder.begin(following)
    recorder.weights(io.BytesIO(b"new"))
    recorder.result({"record": {}, "final": {}})
    finish(db, following, "succeeded", "completed")
    with db.read() as session:
        weights = artifacts.find_ready(session, following.attempt_id, "weights")
        assert artifacts.read_all(session, weights.id) == b"new"
