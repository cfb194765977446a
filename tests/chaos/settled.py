"""What must hold after any disturbance: each acknowledged job in one right final state, and nothing left over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, select

from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.domain import LIVE_ATTEMPT_STATES, Cause
from texelgrad.models import Artifact, Attempt, Event
from texelgrad.why import CAUSES

from tests.e2e.stack import Stack, wait_until

SETTLE_S = 120.0  # on a busy machine; nothing is measured


def causes(job: dict[str, Any]) -> list[str]:
    """How its attempts ended, in their order."""
    return [attempt["cause"] for attempt in job["attempts"]]


def finish(stack: Stack, job_id: str) -> dict[str, Any]:
    """Wait until the job has ended."""
    return stack.client.wait(job_id, timeout_s=SETTLE_S)


def database_of(stack: Stack) -> Database:
    """The stack's database, opened."""
    url = stack.environment.get("TEXELGRAD_DATABASE_URL", "")
    return Database(Settings(data_dir=stack.data_dir, database_url=url).database)


def assert_settled(stack: Stack, jobs: Sequence[str], weights: bytes, also: Sequence[Stack] = ()) -> None:
    """All these jobs, of one spec, have succeeded with these weights, and nothing is left over.

    Args:
        stack: whose API is asked.
        jobs: ids of jobs that were acknowledged.
        weights: the file that an undisturbed run gives.
        also: further stacks on the same database, whose processes are looked at too.
    """
    for job_id in jobs:
        _assert_succeeded(stack, finish(stack, job_id), weights)
    for each in (stack, *also):
        each.settle(SETTLE_S)
        wait_until(lambda each=each: each.orphans() == [], f"no orphan processes, but {each.orphans()}", 30)
        wait_until(lambda each=each: len(each.profiles()) == 1, f"one profile, but {each.profiles()}", 30)
        wait_until(lambda each=each: len(each.places()) == 1, f"one worker's place, but {each.places()}", 30)
    database = database_of(stack)
    try:
        wait_until(lambda: not _unswept(database), "what attempts left staged is swept", 30)
        _assert_rows(database, jobs)
    finally:
        database.close()


def _assert_succeeded(stack: Stack, job: dict[str, Any], weights: bytes) -> None:
    told = f"{job['id']}: {job['state']}, {job['cause']}, {job['message']}, attempts {causes(job)}"
    assert (job["state"], job["cause"]) == ("succeeded", "completed"), told
    states = [attempt["state"] for attempt in job["attempts"]]
    assert states.count("succeeded") == 1, told
    assert states[-1] == "succeeded", told
    _assert_why(stack, job)
    target = stack.folder / "weights"
    assert stack.client.download_weights(job["id"], target).read_bytes() == weights, told
    steps = stack.client.metrics(job["id"], keys="loss", max_points=100_000)["loss"].steps
    assert steps.tolist() == list(range(1, job["total_steps"] + 1)), told


def _assert_why(stack: Stack, job: dict[str, Any]) -> None:
    """Whoever asks is told how each try ended that was not the last."""
    texts = [reason["text"] for reason in stack.client.why(job["id"])["reasons"]]
    for attempt in job["attempts"][:-1]:
        meaning = CAUSES[Cause(attempt["cause"])][0]
        start = f"Try {attempt['number']} on {attempt['worker_id']} was {attempt['state']}: {meaning}"
        assert any(text.startswith(start) for text in texts), (start, texts)


def _unswept(database: Database) -> list[str]:
    ended = select(Attempt.id).where(Attempt.state.not_in(LIVE_ATTEMPT_STATES))
    with database.read() as session:
        query = select(Artifact.id).where(Artifact.attempt_id.in_(ended), Artifact.state != "ready")
        return list(session.scalars(query))


def _assert_rows(database: Database, jobs: Sequence[str]) -> None:
    """One set of weights a job, no attempt without an end, events numbered without gaps."""
    with database.read() as session:
        for job_id in jobs:
            own = select(Attempt.id).where(Attempt.job_id == job_id)
            kinds = session.scalars(
                select(Artifact.kind).where(Artifact.attempt_id.in_(own), Artifact.state == "ready")
            ).all()
            assert kinds.count("weights") == 1, (job_id, kinds)
            assert kinds.count("checkpoint") <= 1, (job_id, kinds)  # without validation the last
            live = session.scalars(own.where(Attempt.state.in_(LIVE_ATTEMPT_STATES))).all()
            assert not live, (job_id, live)
            count, last = session.execute(
                select(func.count(), func.max(Event.seq)).where(Event.job_id == job_id)
            ).one()
            assert count == last, job_id
