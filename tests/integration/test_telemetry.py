"""Curves, progress, records and logs of a running attempt, on both databases."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from sqlalchemy import select

from texelgrad import repository
from texelgrad.db import Database
from texelgrad.models import Attempt, LogLine

from .steps import OWNER, add_points, claim, queue_job


def test_points_come_back_exactly(db: Database):
    """Bits of float64, NaN and infinities included, over chunks with different keys."""
    job_id = queue_job(db)
    claimed = claim(db)
    values = [0.1, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, -0.0]
    add_points(db, claimed, list(enumerate(values, 1)))
    row = struct.pack("<2d", 0.25, 0.75)
    with db.write() as session:
        repository.append_metrics(
            session, claimed.attempt_id, claimed.token, ["loss", "val_loss"], 1, struct.pack("<I", 8), row
        )
    with db.read() as session:
        curves = repository.curves(session, job_id)
        only = repository.curves(session, job_id, ["val_loss"])
    assert curves["loss"].steps.tolist() == list(range(1, 9))
    assert curves["loss"].values.tobytes() == np.array([*values, 0.25]).tobytes()
    assert list(only) == ["val_loss"]
    assert only["val_loss"].values.tolist() == [0.75]


@pytest.mark.parametrize(
    ("keys", "count", "steps", "values"),
    [([], 1, 4, 0), (["loss"], 2, 4, 16), (["loss"], 1, 4, 16), (["loss"], 0, 0, 0), (["a", "b"], 1, 4, 8)],
)
def test_points_that_do_not_fit_their_bytes(
    db: Database, keys: list[str], count: int, steps: int, values: int
):
    """Lengths that disagree are refused before anything is written."""
    job_id = queue_job(db)
    claimed = claim(db)
    with pytest.raises(ValueError, match="points"), db.write() as session:
        repository.append_metrics(
            session, claimed.attempt_id, claimed.token, keys, count, bytes(steps), bytes(values)
        )
    with db.read() as session:
        assert repository.curves(session, job_id) == {}


def test_progress_merges_metrics(db: Database):
    """Validation metrics stay visible while only the loss comes in."""
    job_id = queue_job(db)
    claimed = claim(db)
    for step, metrics in ((5, {"loss": 0.5, "val_loss": 0.4}), (6, {"loss": math.inf})):
        with db.write() as session:
            repository.record_progress(session, claimed.attempt_id, claimed.token, step, 20, metrics)
    with db.read() as session:
        job = repository.get_job(session, OWNER, job_id)
    assert (job.step, job.total_steps) == (6, 20)
    assert job.last_metrics == {"loss": "Infinity", "val_loss": 0.4}


def test_a_record_is_merged_and_spread(db: Database):
    """Renderer and plan stand in columns of their own."""
    queue_job(db)
    claimed = claim(db)
    for record in (
        {"backend": "webgl2", "renderer": "R", "software": True},
        {"planKey": "k", "renderer": "S"},
    ):
        with db.write() as session:
            repository.save_record(session, claimed.attempt_id, claimed.token, record)
    with db.read() as session:
        attempt = session.get_one(Attempt, claimed.attempt_id)
    assert (attempt.backend, attempt.renderer, attempt.software) == ("webgl2", "S", True)
    assert attempt.plan_key == "k"
    assert attempt.record == {"backend": "webgl2", "renderer": "S", "software": True, "planKey": "k"}


def test_log_lines_are_numbered_and_cut(db: Database):
    """NUL, which PostgreSQL can't store, is replaced; a line has a limit."""
    queue_job(db)
    claimed = claim(db)
    for message in ("first", "a\0b", "x" * 10_000):
        with db.write() as session:
            repository.append_log(session, claimed.attempt_id, claimed.token, "info", message)
    with db.read() as session:
        lines = session.scalars(select(LogLine).order_by(LogLine.seq)).all()
    assert [line.seq for line in lines] == [1, 2, 3]
    assert [line.message for line in lines] == ["first", "a\N{REPLACEMENT CHARACTER}b", "x" * 4096]


def test_a_named_lease_has_one_holder(db: Database):
    """Others get it only after it has run out or was given up."""

    def take(holder: str, lease_s: float = 10) -> bool:
        with db.write() as session:
            return repository.take_lease(session, "keeper", holder, lease_s)

    assert take("a")
    assert not take("b")
    assert take("a", lease_s=-1)
    assert take("b")
    with db.write() as session:
        repository.release_lease(session, "keeper", "a")
    assert not take("a")
    with db.write() as session:
        repository.release_lease(session, "keeper", "b")
    assert take("a")


def test_a_worker_describes_itself(db: Database):
    """The row is made once; what is not named stays; unknown fields are a mistake of ours."""
    for fields in ({"state": "idle", "renderer": "R", "proof": {"float32": True}}, {"state": "busy"}):
        with db.write() as session:
            assert not repository.touch_worker(session, "w", host="h", pid=1, queue="gpu", **fields)
    with db.write() as session:
        (worker,) = repository.list_workers(session)
        assert (worker.state, worker.renderer, worker.proof) == ("busy", "R", {"float32": True})
        worker.draining = True
    with db.write() as session:
        assert repository.touch_worker(session, "w", host="h", pid=1, queue="gpu")
        with pytest.raises(TypeError, match="rendere"):
            repository.touch_worker(session, "w", host="h", pid=1, queue="gpu", rendere="R")
