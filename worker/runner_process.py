"""A runner as its supervisor sees it: a process to talk to by lines, and to end so that nothing of it is left."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from texelgrad.domain import Cause
from texelgrad.processes import DIE_WITH_PARENT, end_session
from texelgrad.repository import Claim
from worker.profiles import ProfileFolder
from worker.runner import encode_claim

_log = logging.getLogger(__name__)
_PROJECT = Path(__file__).resolve().parent.parent
_STOP_S = 3.0  # for the runner to end its browser by itself

Event = dict[str, Any]


class RunnerProcess:
    """Starts at once; `stop` must follow. The thread that makes it must live as long as it does (pdeathsig)."""

    def __init__(self, profiles: Path, on_event: Callable[[], None], *, silence_s: float) -> None:
        """`on_event` is called, from another thread, after each event has been queued.

        One that says nothing for `silence_s` seconds before it is ready never will be: it is frozen, say.
        """
        self.proof: dict[str, Any] | None = None  # once it is ready
        self.fault: Event | None = None  # why it will never be
        self._on_event = on_event
        self._silence_s = silence_s
        self._events: queue.Queue[Event] = queue.Queue()
        self._browser_session: int | None = None
        self._folder = ProfileFolder(profiles)
        self._process = subprocess.Popen(
            [*DIE_WITH_PARENT, sys.executable, "-m", "worker.runner", str(self._folder.profile)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_PROJECT,
            start_new_session=True,
        )
        self._heard_s = time.monotonic()
        threading.Thread(target=self._read, name="runner-events", daemon=True).start()

    @property
    def pid(self) -> int:
        """The runner's process, which leads its session."""
        return self._process.pid

    def settled(self) -> bool:
        """Whether it is ready, or never will be (see `proof` and `fault`): it said so, or has been silent for too long."""
        while self.fault is None:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                break
            if event["event"] == "ready":
                self.proof, self._browser_session = event["proof"], event["browser_session"]
            elif event["event"] in ("unfit", "failed", "died"):
                self.proof, self.fault = None, event
        if self.proof is None and self.fault is None and time.monotonic() - self._heard_s > self._silence_s:
            message = f"the runner said nothing for {self._silence_s:g} s while it started"
            self.fault = {"event": "silent", "cause": Cause.STALLED, "message": message}
        return self.proof is not None or self.fault is not None

    def serve(self, claim: Claim) -> None:
        """Hand it its one claim."""
        self._send({"claim": encode_claim(claim)})

    def cancel(self) -> None:
        """Ask its page to stop at the next burst."""
        self._send({"cancel": True})

    def next_event(self, timeout_s: float) -> Event | None:
        """The next event in order, `died` being the last; None when the time is up."""
        with contextlib.suppress(queue.Empty):
            return self._events.get(timeout=timeout_s)
        return None

    def stop(self, *, patience_s: float = _STOP_S) -> list[int]:
        """End the runner, its browser and the profile. Returns processes that could not be killed: normally []."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_s)
        left = end_session(self.pid, grace_s=0)
        if self._browser_session is not None:
            left += end_session(self._browser_session, grace_s=0)
        self._process.wait()
        left += self._folder.remove()
        if left:
            _log.error("runner %s: processes %s outlived it", self.pid, left)
        return left

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it died: the event is under way
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._post(json.loads(line))
        status = self._process.wait()
        self._post({"event": "died", "message": f"the runner ended with status {status}"})

    def _post(self, event: Event) -> None:
        self._heard_s = time.monotonic()
        self._events.put(event)
        self._on_event()
