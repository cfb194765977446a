"""How long POST /v1/jobs takes at 100 requests a second from 50 clients, with Redis up, stalled and down.

python -m bench.post_latency [--seconds 10] [--database-url URL]

Starts `texelgrad serve` in a folder of its own, its worker draining, so that jobs only pile up. Arrivals are open: each
request has its time, and what is late because all clients are busy counts from that time. Prints p50, p99, the worst, and the CPU time, which other work on the machine does not change.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

ROOT = Path(__file__).resolve().parents[1]
RATE = 100  # requests a second
CLIENTS = 50
UNLIMITED = {"MAX_JOBS": "0", "MAX_QUEUED": "1000000", "RATE_PER_MINUTE": "0"}


@contextmanager
def serve(folder: Path, database_url: str) -> Generator[tuple[str, psutil.Process]]:
    """A running service; gives its address and its process."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TEXELGRAD_")},
        **{f"TEXELGRAD_{name}": value for name, value in UNLIMITED.items()},
        "TEXELGRAD_DATABASE_URL": database_url,
    }
    command = [sys.executable, "-m", "texelgrad.cli", "serve", "--port=0", f"--data-dir={folder}"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "is ready" in line)
        url = line.split(": ", 1)[1].strip()
        _rest(url, environment | {"TEXELGRAD_DATA_DIR": str(folder)})
        yield url, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def _rest(url: str, environment: dict[str, str]) -> None:
    """Wait for the worker, and let it take no job."""
    while True:
        workers = [row for row in httpx.get(f"{url}v1/workers").json()["items"] if row["state"] == "idle"]
        if workers:
            break
        time.sleep(0.2)
    for worker in workers:
        drain = [sys.executable, "-m", "texelgrad.cli", "workers", "drain", worker["id"]]
        subprocess.run(drain, cwd=ROOT, env=environment, check=True, capture_output=True)


async def measure(url: str, body: bytes, seconds: float) -> list[float]:
    """Latencies in seconds, from the time at which each request should have left."""
    took: list[float] = []
    due: asyncio.Queue[float | None] = asyncio.Queue()

    async def client() -> None:
        headers = {"Content-Type": "application/json"}
        async with httpx.AsyncClient(timeout=60, headers=headers) as http:
            while (at := await due.get()) is not None:
                await _post(http, url, body)
                took.append(time.monotonic() - at)

    clients = [asyncio.create_task(client()) for _ in range(CLIENTS)]
    started = time.monotonic()
    for number in range(int(seconds * RATE)):
        at = started + number / RATE
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        due.put_nowait(at)
    for _ in clients:
        due.put_nowait(None)
    await asyncio.gather(*clients)
    return sorted(took)


async def _post(http: httpx.AsyncClient, url: str, body: bytes) -> None:
    """As a good client does it: a broken connection is tried again under the same key."""
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    while True:
        try:
            answer = await http.post(f"{url}v1/jobs", content=body, headers=headers)
        except httpx.TransportError as error:
            print(f"once more after {error!r}")
        else:
            assert answer.status_code == httpx.codes.ACCEPTED, answer.text
            return


def report(name: str, service: psutil.Process, url: str, body: bytes, seconds: float) -> None:
    """Measure, and print one line of figures."""
    before = _api_cpu_s(service)
    took = asyncio.run(measure(url, body, seconds))
    cpu_ms = (_api_cpu_s(service) - before) / len(took) * 1e3
    p50, p99, worst = (1e3 * took[index] for index in (len(took) // 2, int(0.99 * len(took)), -1))
    print(
        f"redis {name:8} {len(took)} posts: p50 {p50:.0f} ms, p99 {p99:.0f} ms, worst {worst:.0f} ms; "
        f"{cpu_ms:.1f} ms of the API's CPU each"
    )


def _api_cpu_s(service: psutil.Process) -> float:
    times = [p.cpu_times() for p in service.children(recursive=True) if "gunicorn" in " ".join(p.cmdline())]
    return sum(each.user + each.system for each in times)


def main() -> None:
    """Measure all three."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--database-url", default="", help="Empty: SQLite.")
    arguments = parser.parse_args()
    body = json.dumps(json.loads((ROOT / "examples" / "seed_demo.json").read_text())).encode()
    load = os.getloadavg()[0]
    print(
        f"{platform.platform()}, {os.cpu_count()} cores, load {load:.1f} before, {RATE}/s from {CLIENTS} clients"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # Chromium runs as another user where we are root
        with serve(Path(folder), arguments.database_url) as (url, service):
            asyncio.run(measure(url, body, 1.0))  # connections and caches
            report("up", service, url, body, arguments.seconds)
            redis = next(child for child in service.children() if "redis-server" in " ".join(child.cmdline()))
            redis.suspend()
            report("stalled", service, url, body, arguments.seconds)
            redis.resume()
            # Down for as long as this takes: what would start it again is stopped as well.
            service.suspend()
            redis.send_signal(signal.SIGKILL)
            report("down", service, url, body, arguments.seconds)
            service.resume()


if __name__ == "__main__":
    main()
