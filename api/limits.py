"""Token buckets: how often one caller may ask. In memory, so each API process counts for itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from texelgrad.errors import TooMany

_BURST_S = 10.0  # of saved-up requests that may come at once
_MAX_BUCKETS = 10_000  # of which full ones are forgotten


class RateLimit:
    """One bucket a name; it fills evenly and holds ten seconds' worth, at least one request."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # name -> tokens, when they were counted
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many buckets are kept."""
        return len(self._buckets)

    def take(self, name: str, per_minute: int) -> None:
        """Take a token; raises TooMany with the seconds until there is one. 0 a minute means no limit."""
        if per_minute <= 0:
            return
        rate = per_minute / 60
        most = max(1.0, rate * _BURST_S)
        now = self._clock()
        with self._lock:
            tokens, since = self._buckets.get(name, (most, now))
            tokens = min(most, tokens + (now - since) * rate)
            if tokens < 1:
                self._buckets[name] = (tokens, now)
                wait_s = (1 - tokens) / rate
                raise TooMany(f"{per_minute} requests a minute are allowed.", wait_s)
            self._buckets[name] = (tokens - 1, now)
            if len(self._buckets) > _MAX_BUCKETS:
                self._forget(now)

    def _forget(self, now: float) -> None:
        """Drop what has not been used for so long that it is full again at any usual rate."""
        self._buckets = {name: bucket for name, bucket in self._buckets.items() if now - bucket[1] < 60}
