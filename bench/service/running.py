"""A service to measure: `texelgrad serve` in a folder of its own, on SQLite or on a PostgreSQL of its own."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from texelgrad.client import Client, Job
from texelgrad.config import Settings
from texelgrad.db import Database

ROOT = Path(__file__).resolve().parents[2]
UNLIMITED = {"MAX_JOBS": "0", "MAX_QUEUED": "1000000", "RATE_PER_MINUTE": "0"}
_START_S = 120.0
_WORDS = {"api": "gunicorn", "keeper": "texelgrad.keeper", "worker": "worker.app", "redis": "redis-server"}


@dataclass(frozen=True)
class Service:
    """A running service."""

    url: str
    client: Client
    serve: psutil.Process
    folder: Path
    environment: Mapping[str, str]

    def part(self, name: str) -> psutil.Process:
        """The main process of api, keeper, worker or redis."""
        word = _WORDS[name]
        live = (child for child in self.serve.children() if child.status() != psutil.STATUS_ZOMBIE)
        return next(child for child in live if word in " ".join(child.cmdline()))

    def worker(self) -> dict[str, Any]:
        """The row of its worker."""
        return next(
            (row for row in self.client.workers() if row["state"] != "stopped"), {"state": "starting"}
        )

    def settle(self) -> None:
        """Wait until the worker is idle, and its next browser ready."""
        wait_until(lambda: self.worker()["state"] == "idle", "an idle worker")

    def drain(self, *, undo: bool = False) -> None:
        """Let the worker take no job, or take them again."""
        command = [sys.executable, "-m", "texelgrad.cli", "workers", "drain", self.worker()["id"]]
        command += ["--undo"] if undo else []
        subprocess.run(command, cwd=ROOT, env=self.environment, check=True, capture_output=True)
        wanted = {"idle", "busy"} if undo else {"draining"}
        wait_until(lambda: self.worker()["state"] in wanted, f"a worker that is {' or '.join(wanted)}")

    def database(self) -> Database:
        """Its database, opened; to be closed."""
        url = self.environment.get("TEXELGRAD_DATABASE_URL", "")
        return Database(Settings(data_dir=self.folder, database_url=url).database)

    def run(self, spec: Mapping[str, Any]) -> Job:
        """A job from its POST to its end."""
        return self.client.wait(self.client.create_job(spec)["id"])


@contextmanager
def running(database_url: str = "", **settings: str) -> Generator[Service]:
    """A service with an idle worker; `settings` by their names in capitals. An empty URL means SQLite."""
    with tempfile.TemporaryDirectory(prefix="texelgrad-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)  # Chromium runs as another user where we are root
        ours = {**UNLIMITED, **settings, "DATABASE_URL": database_url, "DATA_DIR": str(folder)}
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TEXELGRAD_")},
            **{f"TEXELGRAD_{name}": value for name, value in ours.items()},
        }
        command = [sys.executable, "-m", "texelgrad.cli", "serve", "--port=0"]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            url = _address(process)
            with Client(url) as client:
                service = Service(url, client, psutil.Process(process.pid), folder, environment)
                service.settle()
                yield service
        finally:
            process.terminate()
            process.wait()


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = _START_S) -> None:
    """Look every 20 ms until the condition holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_s:g} s")
        time.sleep(0.02)


def _address(process: subprocess.Popen[str]) -> str:
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:  # to its end: a full pipe would stop the service
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()
    while "is ready" not in (line := lines.get(timeout=_START_S)):
        pass
    return line.split(": ", 1)[1].strip()
