"""The whole service as a subprocess, on a port, a folder and a temporary folder of its own; and what it leaves behind."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from texelgrad.client import FINAL_STATES, Client, Job, Unreachable

ROOT = Path(__file__).resolve().parents[2]
START_S = 120.0
STOP_S = 60.0


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 90.0) -> None:
    """Poll until the condition holds; fails the test otherwise."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s:g} s"
        time.sleep(0.1)  # more often would take the CPU from what is waited for


class Stack:
    """`texelgrad serve` with everything real: Redis, Celery, SQLite, Chromium. A context manager."""

    def __init__(
        self, settings: Mapping[str, str] | None = None, *, warm: bool = True, data_dir: Path | None = None
    ) -> None:
        """`settings` by their names, such as {"lease_s": "3"}; `warm`: entering waits until the worker is.

        `data_dir` is below the stack's own folder unless it is given.
        """
        self._warm = warm
        self.folder = Path(tempfile.mkdtemp(prefix="texelgrad-e2e-"))
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.data_dir = data_dir or self.folder / "data"
        for folder in (self.folder, self.temporary):
            folder.chmod(0o711)  # Chromium runs as another user where the tests run as root
        ours = {"lease_s": "4", "idle_look_s": "1", "keeper_period_s": "0.3", **(settings or {})}
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("TEXELGRAD_")},
            **{f"TEXELGRAD_{name.upper()}": value for name, value in ours.items()},
            "TMPDIR": str(self.temporary),
        }
        self.url = ""
        self.client: Client
        self._lines: queue.Queue[str] = queue.Queue()

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """Start the service, again where it has ended, and wait until it is ready."""
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "texelgrad.cli",
                "serve",
                "--port=0",
                f"--data-dir={self.data_dir}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env=self.environment,
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.url = self.line_with("texelgrad is ready: ").split(": ", 1)[1]
        self.client = Client(self.url)
        if self._warm:
            self.settle()

    def wait_for_end(self) -> int:
        """Wait until the service has ended; its exit status."""
        self.client.close()
        return self.process.wait(STOP_S)

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.client.close()
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            if kind is not None:
                print(self.logs())  # noqa: T201 - what pytest shows of a failed run
            shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line.rstrip())

    def line_with(self, text: str) -> str:
        """Wait for a line of `serve` that contains the text."""
        seen: list[str] = []
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            try:
                line = self._lines.get(timeout=0.5)
            except queue.Empty:
                if self.process.poll() is not None:
                    break
                continue
            if text in line:
                return line
            seen.append(line)
        raise AssertionError(f"no line with {text!r}; serve said:\n" + "\n".join(seen) + "\n" + self.logs())

    def logs(self) -> str:
        """The end of each part's log."""
        logs = sorted((self.data_dir / "logs").glob("*.log"))
        ends = [log.read_text(errors="replace").splitlines()[-40:] for log in logs]
        return "\n".join(f"==== {log.name}\n" + "\n".join(end) for log, end in zip(logs, ends, strict=True))

    def worker(self) -> dict[str, Any]:
        """The row of this stack's worker; empty while there is none, or nobody answers."""
        try:
            rows = self.client.workers()
        except Unreachable:
            return {}
        pids = {process.pid for process in self._descendants()}
        return next((row for row in rows if row["state"] != "stopped" and row["pid"] in pids), {})

    def settle(self, timeout_s: float = START_S) -> None:
        """Wait until the worker is idle and warm: one spare runner and its browser, nothing besides."""

        def is_warm() -> bool:
            return (
                self.worker().get("state") == "idle"
                and len(self.runners()) == 1
                and len(self.browsers()) == 1
            )

        wait_until(is_warm, "a warm worker", timeout_s)

    def wait_for_step(self, job: Job, step: int) -> Job:
        """Wait until a running job has come so far."""

        def has_come() -> bool:
            nonlocal job
            job = self.client.job(job["id"])
            assert job["state"] not in FINAL_STATES, f"{job['state']} ({job['cause']}: {job['message']})"
            return job["step"] >= step

        wait_until(has_come, f"step {step} of {job['id']}")
        return job

    # ---- what runs, and what is left

    def runners(self) -> list[psutil.Process]:
        """Runner processes, spares included."""
        return [p for p in self._with("worker.runner") if p.name().startswith("python")]

    def browsers(self) -> list[psutil.Process]:
        """The main processes of Chromium; its children have a --type."""
        return [p for p in self._with("--user-data-dir=") if not _has_type(p)]

    def renderers(self) -> list[psutil.Process]:
        """The processes that hold Chromium's pages."""
        return [
            child
            for browser in self.browsers()
            for child in browser.children(recursive=True)
            if any(word == "--type=renderer" for word in _command(child))
        ]

    def gpu_processes(self) -> list[psutil.Process]:
        """Chromium's processes that draw."""
        return [
            p
            for browser in self.browsers()
            for p in browser.children(recursive=True)
            if "--type=gpu-process" in _command(p)
        ]

    def part(self, name: str) -> list[psutil.Process]:
        """The main process of a part of `serve`: api, keeper, worker, redis; none while it restarts."""
        word = {
            "api": "gunicorn",
            "keeper": "texelgrad.keeper",
            "worker": "worker.app",
            "redis": "redis-server",
        }[name]
        return [p for p in psutil.Process(self.process.pid).children() if word in " ".join(_command(p))]

    def celery_child(self) -> list[psutil.Process]:
        """The pool process that supervises."""
        return [
            child
            for parent in self.part("worker")
            for child in parent.children()
            if "worker.app" in _command(child)
        ]

    def profiles(self) -> set[str]:
        """Names of the profile folders that exist."""
        return {path.name for root in self.temporary.glob("texelgrad-profiles-*") for path in root.iterdir()}

    def places(self) -> set[str]:
        """Names of the files by which workers show that they live."""
        return {path.name for root in self.temporary.glob("texelgrad-workers-*") for path in root.iterdir()}

    def left_behind(self) -> list[str]:
        """Command lines of live processes that use our folder, whoever their parent is now."""
        return [" ".join(_command(process)) for process in self._users()]

    def orphans(self) -> list[str]:
        """Command lines of those that `serve` is no ancestor of."""
        ours = {self.process.pid, *(process.pid for process in self._descendants())}
        return [" ".join(_command(process)) for process in self._users() if process.pid not in ours]

    def _users(self) -> list[psutil.Process]:
        """Live processes that have our folder on their command line or in their environment."""
        mark = str(self.folder)
        return [
            process
            for process in psutil.process_iter()
            if process.pid != os.getpid() and mark in " ".join([*_command(process), *_environment(process)])
        ]

    def _descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def _with(self, word: str) -> list[psutil.Process]:
        """Our live processes with a word on their command line that starts so."""
        return [p for p in self._descendants() if any(part.startswith(word) for part in _command(p))]


def kill(process: psutil.Process) -> None:
    """SIGKILL, as the kernel does when memory runs out."""
    os.kill(process.pid, signal.SIGKILL)


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
        return []


def _has_type(process: psutil.Process) -> bool:
    return any(word.startswith("--type=") for word in _command(process))


def _environment(process: psutil.Process) -> list[str]:
    try:
        return list(process.environ().values())
    except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied, OSError):
        return []
