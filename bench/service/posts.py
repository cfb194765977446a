"""How long POST /v1/jobs takes at 100 requests a second from 50 clients, with Redis up, stalled and down.

The worker is idle: it is drained, so that jobs only pile up. Beside that stands what the same requests take while it trains what is
posted, on the same cores.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from bench.service.figures import Row, quantiles
from bench.service.load import load
from bench.service.running import Service, running

GOAL_MS = 200.0
_Case = Callable[[Service], AbstractContextManager[None]]


def measure(database: str, url: str, seconds: float) -> list[Row]:
    """The cases on one database."""
    with running(url) as service:
        service.drain()
        load(service.url, 1.0)  # connections and caches
        cases: list[tuple[str, _Case, float | None]] = [
            ("normal", _nothing, GOAL_MS),
            ("Redis stalled", _stalled, GOAL_MS),
            ("Redis down", _down, GOAL_MS),
            ("worker training", _training, None),
        ]
        return [
            _measure(service, f"POST p99, {database}, {name}", case, goal_ms, seconds)
            for name, case, goal_ms in cases
        ]


def _measure(service: Service, name: str, case: _Case, goal_ms: float | None, seconds: float) -> Row:
    with case(service):
        api = service.part("api")
        before = _cpu_s(api)
        measured = load(service.url, seconds)
        cpu_ms = 1e3 * (_cpu_s(api) - before) / len(measured.took_ms)
    p50, p99, worst = quantiles(measured.took_ms)
    besides = {"p50": p50, "worst": worst, "requests": len(measured.took_ms)}
    each = {"api_cpu_ms_each": round(cpu_ms, 2), "client_cpu_ms_each": round(measured.client_cpu_ms, 2)}
    return Row(name, p99, "ms", goal_ms, {**besides, **each})


@contextmanager
def _nothing(_service: Service) -> Generator[None]:
    yield


@contextmanager
def _stalled(service: Service) -> Generator[None]:
    """Redis takes connections, and answers nothing."""
    redis = service.part("redis")
    redis.suspend()
    try:
        yield
    finally:
        redis.resume()


@contextmanager
def _down(service: Service) -> Generator[None]:
    """No Redis; what would start it again is stopped as well."""
    redis = service.part("redis")
    service.serve.suspend()
    redis.send_signal(signal.SIGKILL)
    try:
        yield
    finally:
        service.serve.resume()


@contextmanager
def _training(service: Service) -> Generator[None]:
    """The worker takes up what was posted."""
    service.drain(undo=True)
    yield


def _cpu_s(api: Any) -> float:
    times = [process.cpu_times() for process in (api, *api.children(recursive=True))]
    return sum(each.user + each.system for each in times)
