"""The thread that publishes hints after a commit, so that no request ever waits for the broker."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from texelgrad.hints import Publisher

_log = logging.getLogger(__name__)
_PAUSE_S = 0.5  # after a failure; what comes meanwhile goes out together


class Hints:
    """Hints to send, in front of a Publisher; the thread starts with the first one, hence after any fork."""

    def __init__(self, publisher: Publisher, most: int) -> None:
        """`most`: so many may wait in one queue; more would wake nobody."""
        self._publisher = publisher
        self._most = most
        self._due: Counter[str] = Counter()  # by queue
        self._closed = False
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()

    def send(self, queue_name: str) -> None:
        """Publish a hint soon; returns at once, whatever the broker does."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="hints", daemon=True)
                self._thread.start()
            self._due[queue_name] += 1
            self._changed.notify()

    def close(self) -> None:
        """Let the thread end; what waits is dropped, and a hint that is stuck is not waited for."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout=1)

    def _run(self) -> None:
        while due := self._take():
            for queue_name, count in due.items():
                try:
                    room = self._most - self._publisher.waiting(queue_name)
                    for _ in range(min(count, room)):
                        self._publisher.send(queue_name)
                except Exception as error:  # noqa: BLE001 - whatever it is, the keeper sends the hint again
                    _log.warning("no hint sent to %s, the keeper will: %s", queue_name, error)
                    with self._changed:  # not for each job anew, while the broker is away
                        self._changed.wait_for(lambda: self._closed, _PAUSE_S)

    def _take(self) -> Counter[str]:
        """All that are due, once there are some; none once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._due or self._closed)
            due, self._due = self._due, Counter()
            return Counter() if self._closed else due
