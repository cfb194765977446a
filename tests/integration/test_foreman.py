"""The foreman and a spare runner that freezes while it starts."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_extensions import override

from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.models import Worker
from texelgrad.processes import session_members
from worker import foreman
from worker.foreman import Foreman
from worker.runner_process import RunnerProcess

START_S = 1.0
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class FrozenRunner(RunnerProcess):
    """Is stopped before it has said a word."""

    pids: list[int]

    @override
    def __init__(self, profiles: Path, on_event: Callable[[], None], *, silence_s: float) -> None:
        super().__init__(profiles, on_event, silence_s=silence_s)
        os.kill(self.pid, signal.SIGSTOP)
        self.pids.append(self.pid)


def _seen(db: Database) -> Worker | None:
    with db.read() as session:
        return session.get(Worker, "w1")


def _wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_a_spare_that_freezes_is_replaced(
    db: Database, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It is killed when its time is up, the worker says why, and is seen all the while."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(FrozenRunner, "pids", pids := [], raising=False)
    monkeypatch.setattr(foreman, "RunnerProcess", FrozenRunner)
    monkeypatch.setattr(foreman, "_BACKOFF_S", (0.1,))
    worker = Foreman(settings.model_copy(update={"start_s": START_S, "idle_look_s": 0.1}), "w1")
    worker.start()
    try:
        seen: set[int] = set()
        while len(pids) < 1 or session_members(pids[0]):
            if (row := _seen(db)) is not None and row.fault is None:
                seen.add(row.seen_at)
            assert worker.is_alive()
            assert len(seen) < 100, "the frozen runner was left"
            time.sleep(0.02)
        assert len(seen) > 3
        _wait_until(lambda: len(pids) > 1, "no other runner was started")
        row = _seen(db)
        assert row is not None
        assert row.fault == "stalled: the runner said nothing for 1 s while it started"
    finally:
        worker.drain()
        worker.join(20)
    assert not worker.is_alive()
    assert [session_members(pid) for pid in pids] == [[]] * len(pids)
