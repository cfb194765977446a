"""Supervision of an attempt against a scripted runner: what it makes of events, limits, cancellation and a lost lease."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest

from texelgrad import repository
from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.domain import AttemptState, Cause
from texelgrad.models import Attempt
from texelgrad.repository import Claim
from worker import attempt
from worker.attempt import Ending, supervise
from worker.runner_process import Event, RunnerProcess

from .steps import OWNER, advance, claim, finish, queue_job

PROGRESS: Event = {"event": "progress"}
SAVED: Event = {"event": "saved"}


class Clock:
    """Stands in for the module `time`: seconds pass only where somebody waits."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s


CLOCK = Clock()


@pytest.fixture(autouse=True)
def _fake_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "time", CLOCK)


class ScriptedRunner:
    """Gives the events of a script at their times; a cancellation may add one."""

    def __init__(self, script: Iterable[tuple[float, Event]], on_cancel: Event | None = None) -> None:
        self._script = list(script)  # (seconds since the claim, event)
        self._on_cancel = on_cancel
        self.served: Claim | None = None
        self.cancelled = 0
        self._began_s = 0.0

    @property
    def age_s(self) -> float:
        """Seconds since the claim."""
        return CLOCK.now_s - self._began_s

    def serve(self, claim: Claim) -> None:
        self.served, self._began_s = claim, CLOCK.now_s

    def cancel(self) -> None:
        self.cancelled += 1
        if self._on_cancel:
            self._script.insert(0, (0.0, self._on_cancel))

    def next_event(self, timeout_s: float) -> Event | None:
        wait_s = max(self._script[0][0] - self.age_s, 0) if self._script else timeout_s
        CLOCK.now_s += min(wait_s, timeout_s)
        return self._script.pop(0)[1] if self._script and wait_s <= timeout_s else None


def _supervise(
    db: Database, claimed: Claim, runner: ScriptedRunner, settings: Settings, *, draining: bool = False
) -> Ending | None:
    return supervise(
        cast(RunnerProcess, runner),
        claimed,
        db,
        settings,
        draining=lambda: draining,
        each_tick=lambda _age_s: None,
    )


@pytest.fixture
def claimed(db: Database) -> Claim:
    """An attempt that has started."""
    queue_job(db)
    started = claim(db)
    advance(db, started, "starting")
    return started


def _failed(code: str, **more: Any) -> Event:
    return {"event": "failed", "code": code, "message": "because", "failure": {"step": 3}, **more}


@pytest.mark.parametrize(
    ("event", "outcome", "cause"),
    [
        (SAVED, "succeeded", "completed"),
        (_failed("non_finite_loss"), "failed", "non_finite_loss"),
        (_failed("weights_damaged"), "failed", "weights_damaged"),
        (_failed("data_damaged"), "failed", "data_damaged"),
        (_failed("context_lost"), "failed", "context_lost"),
        (_failed("page_crashed"), "lost", "page_crashed"),
        (_failed("a code of the future"), "failed", "internal"),
        ({"event": "died", "message": "status -9"}, "lost", "runner_died"),
    ],
)
def test_the_last_event_decides(
    db: Database, claimed: Claim, settings: Settings, event: Event, outcome: str, cause: str
):
    """What the page says is a failure, what takes the page away a loss; unknown codes are our own fault."""
    runner = ScriptedRunner([(0, PROGRESS), (0, event)])
    ending = _supervise(db, claimed, runner, settings)
    assert runner.served is claimed
    assert ending is not None
    assert (ending.outcome, ending.cause) == (AttemptState(outcome), Cause(cause))
    if event["event"] == "failed":
        assert (ending.message, ending.failure) == ("because", {"step": 3})


def test_a_fenced_attempt_has_no_ending(db: Database, claimed: Claim, settings: Settings):
    assert _supervise(db, claimed, ScriptedRunner([(0, {"event": "fenced"})]), settings) is None


def test_a_silent_page_is_stalled(db: Database, claimed: Claim, settings: Settings):
    """Silence counts from the last sign of life."""
    quick = settings.model_copy(update={"stall_s": 0.4})
    runner = ScriptedRunner([(0.3, PROGRESS), (30, SAVED)])
    ending = _supervise(db, claimed, runner, quick)
    assert ending is not None
    assert (ending.outcome, ending.cause) == (AttemptState.LOST, Cause.STALLED)
    assert 0.7 <= runner.age_s <= 1.0


def test_progress_keeps_an_attempt_alive_until_its_wall_limit(
    db: Database, claimed: Claim, settings: Settings
):
    """The limit is the spec's, else that of the settings."""
    quick = settings.model_copy(update={"stall_s": 0.5, "max_wall_s": 1})
    script = [(0.2 * tick, PROGRESS) for tick in range(100)]
    ending = _supervise(db, claimed, ScriptedRunner(script), quick)
    assert ending is not None
    assert (ending.outcome, ending.cause) == (AttemptState.FAILED, Cause.WALL_LIMIT)


def test_a_cancelled_page_that_stops(db: Database, claimed: Claim, settings: Settings):
    """The page is asked once, and whatever it says then means that it was cancelled."""
    with db.write() as session:
        repository.request_cancel(session, OWNER, claimed.job_id)
    runner = ScriptedRunner([(30, SAVED)], on_cancel=_failed("aborted"))
    ending = _supervise(db, claimed, runner, settings)
    assert ending is not None
    assert (ending.outcome, ending.cause) == (AttemptState.CANCELLED, Cause.CANCELLED)
    assert runner.cancelled == 1


def test_a_cancelled_page_that_does_not_stop(db: Database, claimed: Claim, settings: Settings):
    """It is given up after a few seconds."""
    with db.write() as session:
        repository.request_cancel(session, OWNER, claimed.job_id)
    runner = ScriptedRunner((0.2 * tick, PROGRESS) for tick in range(100))
    ending = _supervise(db, claimed, runner, settings)
    assert ending is not None
    assert ending.outcome == AttemptState.CANCELLED
    assert runner.cancelled == 1
    assert runner.age_s < 5


def test_success_beats_a_late_cancellation(db: Database, claimed: Claim, settings: Settings):
    """A page that has saved before it heard of the cancellation has succeeded."""
    with db.write() as session:
        repository.request_cancel(session, OWNER, claimed.job_id)
    ending = _supervise(db, claimed, ScriptedRunner([(30, SAVED)], on_cancel=SAVED), settings)
    assert ending is not None
    assert ending.outcome == AttemptState.SUCCEEDED


def _lease_until(db: Database, claimed: Claim) -> int:
    with db.read() as session:
        return session.get_one(Attempt, claimed.attempt_id).lease_until


def test_the_lease_is_renewed(db: Database, claimed: Claim, settings: Settings):
    """While the page shows signs of life, well before it runs out."""
    before = _lease_until(db, claimed)
    quick = settings.model_copy(update={"lease_s": 3.0})
    script: list[tuple[float, Event]] = [(0.2 * tick, PROGRESS) for tick in range(8)]
    _supervise(db, claimed, ScriptedRunner([*script, (1.6, SAVED)]), quick)
    assert _lease_until(db, claimed) != before


def test_a_lost_lease_ends_the_supervision(db: Database, claimed: Claim, settings: Settings):
    """Somebody else ended the attempt: there is nothing left for us to say."""
    finish(db, claimed, "lost", "lease_expired")
    quick = settings.model_copy(update={"lease_s": 1.0})
    script = ((0.2 * tick, PROGRESS) for tick in range(100))
    assert _supervise(db, claimed, ScriptedRunner(script), quick) is None


def test_a_worker_that_stops_gives_the_page_a_moment(db: Database, claimed: Claim, settings: Settings):
    """A run that is nearly done ends by itself, another goes back to the queue."""
    ending = _supervise(db, claimed, ScriptedRunner([(1, SAVED)]), settings, draining=True)
    assert ending is not None
    assert ending.outcome == AttemptState.SUCCEEDED
    script = ((0.2 * tick, PROGRESS) for tick in range(100))
    ending = _supervise(db, claimed, ScriptedRunner(script), settings, draining=True)
    assert ending is not None
    assert (ending.outcome, ending.cause) == (AttemptState.LOST, Cause.WORKER_STOPPED)
    assert not ending.is_environment_fault


def test_environment_faults_are_told_from_the_jobs_own():
    """After the first the worker must prove itself again."""
    assert Ending(AttemptState.FAILED, Cause.NO_WEBGL2).is_environment_fault
    assert not Ending(AttemptState.FAILED, Cause.NON_FINITE_LOSS).is_environment_fault
    assert not Ending(AttemptState.LOST, Cause.CHECKPOINT_DAMAGED).is_environment_fault
    assert not Ending(AttemptState.SUCCEEDED, Cause.COMPLETED).is_environment_fault
