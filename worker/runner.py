"""The killable process of one attempt: opens a proved browser ahead, waits for its claim on stdin, serves it, reports.

Started as `python -m worker.runner PROFILE`. Lines of JSON come in: a claim, then perhaps a cancellation; end of file
means stop. Lines of JSON go out: `progress` while it starts, `ready` or `unfit`, then `progress` of its claim, and at the
end `saved`, `failed` or `fenced`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.domain import Cause
from texelgrad.engine import find_engine
from texelgrad.errors import Fenced, Invalid
from texelgrad.repository import Claim, DataArray, Resume
from worker.browser import Browser, BrowserDied, PageRejected, open_proved
from worker.chromium import EnvironmentFault, find_chromium, gpu_devices, recipes_for
from worker.page_server import PageServer
from worker.recorder import Recorder

_log = logging.getLogger(__name__)
_MAX_LINE_BYTES = 64 << 20
_START_S = 10.0  # for the page to accept a job
_CANCEL_S = 2.0
_KEEP_S = 2.0  # for the page's last lines to be stored
_BEAT_S = 1.0  # while it starts: Chromium may take its deadline for each recipe, a frozen runner is silent
_PROGRESS_S = 0.2  # signs of life need not come oftener


class Reporter:
    """Writes events as lines of JSON, from any thread."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._last_progress = 0.0

    def emit(self, event: str, **fields: Any) -> None:
        """Report an event; `progress` is thinned."""
        with self._lock:
            if event == "progress":
                now = time.monotonic()
                if now - self._last_progress < _PROGRESS_S:
                    return
                self._last_progress = now
            self._out.write(json.dumps({"event": event, **fields}) + "\n")
            self._out.flush()


def encode_claim(claim: Claim) -> dict[str, Any]:
    """A claim as it crosses the pipe."""
    return asdict(claim)


def decode_claim(message: dict[str, Any]) -> Claim:
    """The claim that `encode_claim` wrote."""
    arrays: list[dict[str, Any]] = message["data"]
    data = tuple(_decode_array(array) for array in arrays)
    fields: dict[str, Any] = {**message, "data": data}
    if message["resume"] is not None:
        fields["resume"] = Resume(**message["resume"])
    return Claim(**fields)


def _decode_array(fields: dict[str, Any]) -> DataArray:
    order: list[int] | None = fields["order"]
    return DataArray(
        fields["name"],
        fields["role"],
        fields["dtype"],
        tuple(fields["shape"]),
        fields["artifact_id"],
        None if order is None else tuple(order),
    )


async def run(settings: Settings, profile: Path, reporter: Reporter) -> None:
    """Open the browser, serve one claim, stop the browser."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    lines = await _stdin()
    db = Database(settings.database)
    recorder = Recorder(db, reporter.emit, allow_software=settings.allow_software)
    with PageServer(find_engine(), recorder) as server:
        beating = asyncio.create_task(_beat(reporter))
        try:
            chromium = find_chromium(settings.chromium, settings.chromium_user, nice=settings.chromium_nice)
            recipes = recipes_for(
                pinned=settings.gpu_recipe, allow_software=settings.allow_software, gpu=bool(gpu_devices())
            )
            browser, proof = await open_proved(
                chromium, recipes, server.url, profile, deadline_s=settings.start_s
            )
        except EnvironmentFault as fault:
            reporter.emit("unfit", cause=fault.cause, message=str(fault))
            return
        finally:
            beating.cancel()
        try:
            reporter.emit("ready", proof=proof.as_dict(), browser_session=browser.session_id)
            serving = asyncio.create_task(serve(browser, recorder, lines, reporter))
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if serving.done():
                serving.result()
            else:
                serving.cancel()
                await asyncio.wait({serving})  # it keeps the page's last lines
        finally:
            await browser.stop()
    db.close()


async def _beat(reporter: Reporter) -> None:
    """Give signs of life until cancelled."""
    while True:
        reporter.emit("progress")
        await asyncio.sleep(_BEAT_S)


async def serve(
    browser: Browser, recorder: Recorder, lines: asyncio.StreamReader, reporter: Reporter
) -> None:
    """Obey the supervisor's lines until they end; say so if the browser dies first."""
    # One thread, so that the page's lines stay in order; the event loop never waits for the database.
    keeping = ThreadPoolExecutor(1, "page-log")
    idle = browser.on_line

    def keep(level: str, text: str) -> None:
        keeping.submit(recorder.log, level, text).add_done_callback(_log_failure)

    async def kept() -> None:
        """Wait for the lines so far to be stored; in vain while the database is away."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(keeping.submit(lambda: None)), _KEEP_S)

    async def fail(why: str) -> None:
        """Report a death; what Chromium logged before may say more and is mostly noise, so it goes to the job's log alone."""
        if said := browser.last_lines():
            for line in said:
                keep("debug", f"Chromium: {line}")
            await kept()  # before the attempt has ended
        reporter.emit("failed", code=Cause.PAGE_CRASHED, message=why, failure={})

    deaths: list[asyncio.Task[None]] = []

    def tell(died: asyncio.Future[str]) -> None:
        if not died.cancelled():
            deaths.append(asyncio.ensure_future(fail(f"Chromium: {died.result()}")))

    browser.died.add_done_callback(tell)
    try:
        while line := await lines.readline():
            message: dict[str, Any] = json.loads(line)
            try:
                if "claim" in message:
                    recorder.begin(decode_claim(message["claim"]))
                    browser.on_line = keep
                    await browser.call("start", deadline_s=_START_S)
                elif message.get("cancel"):
                    await browser.call("cancel", deadline_s=_CANCEL_S)
            except (
                Invalid
            ) as error:  # stored by a version whose specs ours does not take; trying again is no use
                why = f"this version can't read the job's spec: {error}"
                reporter.emit("failed", code=Cause.SPEC_INVALID, message=why, failure={})
            except BrowserDied as error:
                if not browser.died.done():  # else it has been told
                    await fail(error.reason)
            except PageRejected as error:
                reporter.emit("failed", code=Cause.PAGE_CRASHED, message=str(error), failure={})
    finally:
        browser.on_line = idle
        browser.died.remove_done_callback(tell)
        await kept()
        if deaths:
            await asyncio.wait(deaths)
        keeping.shutdown(wait=False, cancel_futures=True)


def _log_failure(keeping: Future[None]) -> None:
    """Say in the log why a line of the page's console was not kept: nobody asks the thread pool."""
    error = None if keeping.cancelled() else keeping.exception()
    if error is not None and not isinstance(error, Fenced):  # fenced: what the page of an ended attempt says
        _log.error("can't keep a line of the page's console", exc_info=error)


async def _stdin() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=_MAX_LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    return reader


def main() -> None:
    """Run with the events on the stdout that we were given, and everybody else's prints on stderr."""
    events = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settings = Settings.load()
    logging.basicConfig(
        level=settings.log_level, format="%(asctime)s runner %(levelname)s %(name)s: %(message)s"
    )
    for chatty in ("pyppeteer", "websockets"):  # at DEBUG they write every message, and so the page's secret
        logging.getLogger(chatty).setLevel(logging.WARNING)
    with contextlib.suppress(BrokenPipeError):  # the supervisor is gone, and we are about to be
        asyncio.run(run(settings, Path(sys.argv[1]), Reporter(events)))


if __name__ == "__main__":
    main()
