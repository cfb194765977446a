"""The thread that publishes hints after a commit, so that no request ever waits for the broker."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading

from texelgrad.hints import Publisher

_log = logging.getLogger(__name__)
_WAITING = 100  # more are dropped: the keeper tops up
_STOP = ""


class Hints:
    """A bounded queue before a Publisher; the thread starts with the first hint, hence after any fork."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._queue: queue.Queue[str] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def send(self, queue_name: str) -> None:
        """Publish a hint soon; returns at once, whatever the broker does."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="hints", daemon=True)
                self._thread.start()
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(queue_name)

    def close(self) -> None:
        """Let the thread end; what waits is dropped, and a hint that is stuck is not waited for."""
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(_STOP)
        if self._thread is not None:
            self._thread.join(timeout=1)

    def _run(self) -> None:
        while (queue_name := self._queue.get()) != _STOP:
            try:
                self._publisher.send(queue_name)
            except Exception as error:  # noqa: BLE001 - whatever it is, the keeper sends the hint again
                _log.warning("no hint sent to %s, the keeper will: %s", queue_name, error)
