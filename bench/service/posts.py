"""How long POST /v1/jobs takes at 100 requests a second from 50 clients, with Redis up, stalled and down.

The worker rests, so that jobs only pile up. Arrivals are open: each request has its time, and what is late because all
clients are busy counts from that time. The clients are a process of their own.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from bench.service.figures import Row, quantiles
from bench.service.running import ROOT, Service, running

RATE = 100  # requests a second
CLIENTS = 50
GOAL_MS = 200.0
RETRY_S = 60.0  # a service that takes no connection for so long is gone
RETRY_PAUSE_S = 0.02  # or a refused connection would be tried as fast as one core can


def measure(database: str, url: str, seconds: float) -> list[Row]:
    """The three cases on one database."""
    rows: list[Row] = []
    with running(url) as service:
        service.drain()
        load(service, 1.0)  # connections and caches
        for case, prepared in (("normal", _nothing), ("Redis stalled", _stalled), ("Redis down", _down)):
            with prepared(service):
                cpu = service.part("api")
                before = _cpu_s(cpu)
                took = load(service, seconds)
                cpu_ms = 1e3 * (_cpu_s(cpu) - before) / len(took)
            p50, p99, worst = quantiles(took)
            rows.append(
                Row(
                    f"POST p99, {database}, {case}",
                    p99,
                    "ms",
                    GOAL_MS,
                    {"p50": p50, "worst": worst, "requests": len(took), "api_cpu_ms_each": round(cpu_ms, 2)},
                )
            )
    return rows


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


def _cpu_s(api: Any) -> float:
    times = [process.cpu_times() for process in (api, *api.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def load(service: Service, seconds: float, rate: int = RATE) -> list[float]:
    """Latencies in ms of `rate` requests a second, as the load process measures them."""
    command = [sys.executable, "-m", "bench.service.posts", service.url, str(seconds), str(rate)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


async def _generate(url: str, body: bytes, seconds: float, rate: int) -> list[float]:
    took: list[float] = []
    due: asyncio.Queue[float | None] = asyncio.Queue()

    async def client() -> None:
        async with httpx.AsyncClient(timeout=60, headers={"Content-Type": "application/json"}) as http:
            while (at := await due.get()) is not None:
                await post_job(http, url, body)
                took.append(1e3 * (time.monotonic() - at))

    clients = [asyncio.create_task(client()) for _ in range(CLIENTS)]
    started = time.monotonic()
    for number in range(int(seconds * rate)):
        at = started + number / rate
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        due.put_nowait(at)
    for _ in clients:
        due.put_nowait(None)
    await asyncio.gather(*clients)
    return took


async def post_job(http: httpx.AsyncClient, url: str, body: bytes, retry_s: float = RETRY_S) -> None:
    """As a good client does it: a broken connection is tried again under the same key; TimeoutError after `retry_s` of that."""
    headers: Mapping[str, str] = {"Idempotency-Key": str(uuid.uuid4())}
    deadline = time.monotonic() + retry_s
    while True:
        try:
            answer = await http.post(f"{url}v1/jobs", content=body, headers=headers)
        except httpx.TransportError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"a POST: not within {retry_s:g} s") from error
            print(f"once more after {error!r}", file=sys.stderr)
            await asyncio.sleep(RETRY_PAUSE_S)
        else:
            assert answer.status_code == httpx.codes.ACCEPTED, answer.text
            return


if __name__ == "__main__":
    spec = (ROOT / "examples" / "seed_demo.json").read_bytes()
    json.dump(asyncio.run(_generate(sys.argv[1], spec, float(sys.argv[2]), int(sys.argv[3]))), sys.stdout)
