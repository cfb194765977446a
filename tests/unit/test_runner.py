"""The runner's service of one claim, with a page that is played: what it reports, and what it keeps."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from typing_extensions import override

from texelgrad.domain import POLICIES, Cause, Policy
from texelgrad.repository import Claim
from worker.browser import Browser, BrowserDied
from worker.recorder import Recorder
from worker.runner import Reporter, encode_claim, serve

CLAIM = Claim("job_1", "att_1", 1, "token", "usr_1", {"model": "of another age"}, (), None)


class Page:
    """Answers every call, and says what it is told to say."""

    def __init__(self) -> None:
        self.died: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.on_line: Callable[[str, str], None] = lambda _level, _text: None
        self.calls: list[str] = []

    def last_lines(self) -> list[str]:
        """What Chromium logged."""
        return []

    async def call(self, name: str, *, deadline_s: float) -> None:
        """Note a call."""
        self.calls.append(name)


class Keeper(Recorder):
    """Keeps lines as slowly as a busy database, or not at all."""

    def __init__(self, reporter: Reporter, *, fails: bool = False) -> None:
        super().__init__(cast(Any, None), reporter.emit, allow_software=True)
        self.fails = fails
        self.kept: list[str] = []

    @override
    def begin(self, claim: Claim) -> None:
        """Serve whatever comes, where lines are all that counts."""
        if claim.spec:
            super().begin(claim)

    @override
    def log(self, level: str, message: str) -> None:
        """Keep a line."""
        time.sleep(0.05)
        if self.fails:
            raise OSError("the disk is full")
        self.kept.append(f"{level}: {message}")


class Talker(Page):
    """Says three lines as it starts."""

    async def call(self, name: str, *, deadline_s: float) -> None:
        """Say them."""
        await super().call(name, deadline_s=deadline_s)
        for number in range(3):
            self.on_line("error", f"line {number}")


class Killed(Page):
    """Its Chromium is killed as it starts, after it has said what has nothing to do with that."""

    @override
    def last_lines(self) -> list[str]:
        """Noise."""
        return ["[12:ERROR:gcm.cc(1)] noise", "console: more of it"]

    @override
    async def call(self, name: str, *, deadline_s: float) -> None:
        """Die."""
        self.died.set_result("it was killed by signal 9 (SIGKILL)")
        raise BrowserDied("Chromium failed to answer: it was killed", self.last_lines())


def _serve(claim: Claim, make: type[Page], **keeper: Any) -> tuple[Page, Keeper, list[dict[str, Any]]]:
    """Serve a claim whose supervisor goes at once: the page, the recorder, and what was reported."""
    out = io.StringIO()

    async def play() -> tuple[Page, Keeper]:
        lines = asyncio.StreamReader()
        lines.feed_data(json.dumps({"claim": encode_claim(claim)}).encode() + b"\n")
        lines.feed_eof()
        page, reporter = make(), Reporter(out)
        recorder = Keeper(reporter, **keeper)
        await serve(cast(Browser, page), recorder, lines, reporter)
        return page, recorder

    page, recorder = asyncio.run(play())
    return page, recorder, [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_spec_that_this_version_cant_read_ends_the_attempt():
    """It fails with a cause that is not tried again, instead of ending the runner at each try."""
    page, _, (event,) = _serve(CLAIM, Page)
    assert (event["event"], event["code"]) == ("failed", Cause.SPEC_INVALID)
    assert "this version can't read the job's spec: model" in event["message"]
    assert page.calls == []
    assert POLICIES[Cause.SPEC_INVALID] == Policy.FAIL


def test_the_last_lines_are_kept():
    """Those that wait for the database when the attempt ends are often the ones that say why."""
    _, recorder, _ = _serve(replace(CLAIM, spec={}), Talker)
    assert recorder.kept == ["error: line 0", "error: line 1", "error: line 2"]


def test_a_death_is_told_by_its_cause():
    """Once, and without what Chromium logged: that is in the job's log, and there before the attempt ends."""
    _, recorder, (event,) = _serve(replace(CLAIM, spec={}), Killed)
    assert (event["event"], event["code"]) == ("failed", Cause.PAGE_CRASHED)
    assert event["message"] == "Chromium: it was killed by signal 9 (SIGKILL)"
    assert recorder.kept == [f"debug: Chromium: {line}" for line in Killed.last_lines(cast(Any, None))]


def test_lines_that_cant_be_kept_are_logged(caplog: pytest.LogCaptureFixture):
    """Nobody looks at what the pool's futures raise."""
    with caplog.at_level(logging.ERROR):
        _serve(replace(CLAIM, spec={}), Talker, fails=True)
    assert [record.exc_info is not None for record in caplog.records] == [True] * 3
    assert "the disk is full" in caplog.text
