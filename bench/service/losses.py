"""How long it takes until a lost worker is noticed: one that was killed, and one that is frozen with all it started."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from datetime import datetime

import psutil

from bench.service.figures import Row
from bench.service.running import ROOT, Service, running, wait_until
from texelgrad.config import Settings

_LEASE_S: float = Settings.model_fields["lease_s"].default


def measure(count: int) -> list[Row]:
    """The worst of so many losses of each kind, with the default lease."""
    with running() as service:
        killed = max(_lose(service, _kill) for _ in range(count))
        frozen = max(_lose(service, _freeze) for _ in range(count))
    goal = 2 * _LEASE_S
    more = {"lease_s": _LEASE_S, "times": count}
    return [
        Row("killed worker noticed, worst", killed, "s", goal, more),
        Row("frozen worker noticed, worst", frozen, "s", goal, more),
    ]


def _lose(service: Service, how: Callable[[psutil.Process], Callable[[], None]]) -> float:
    """Lose the worker in the middle of a job; answers the seconds until the attempt has ended."""
    spec = json.loads((ROOT / "examples" / "seed_demo.json").read_text())
    spec["train"] = {**spec["train"], "epochs": None, "steps": 10_000_000}
    service.settle()
    job_id = service.client.create_job(spec)["id"]
    wait_until(lambda: service.client.job(job_id)["step"] > 0, "the first steps")
    lost_at = time.time()
    undo = how(service.part("worker"))
    wait_until(lambda: bool(service.client.job(job_id)["attempts"][0]["ended_at"]), "the end of the attempt")
    undo()
    ended_at = service.client.job(job_id)["attempts"][0]["ended_at"]
    service.client.cancel(job_id)
    service.client.wait(job_id)
    return datetime.fromisoformat(ended_at).timestamp() - lost_at


def _kill(worker: psutil.Process) -> Callable[[], None]:
    worker.send_signal(signal.SIGKILL)
    return lambda: None


def _freeze(worker: psutil.Process) -> Callable[[], None]:
    """Stop it with its children and their browser, as a machine that hangs."""
    family = [worker, *worker.children(recursive=True)]
    for process in family:
        process.suspend()

    def go_on() -> None:
        for process in family:
            process.resume()

    return go_on
