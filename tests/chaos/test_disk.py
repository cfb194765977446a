"""A disk that is full while checkpoints and weights are stored: nothing is lost, and it goes on once there is room."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import psutil
import pytest

from .conftest import SETTINGS
from .settled import SETTLE_S, assert_settled, causes
from tests.e2e.stack import Stack, wait_until

# Minutes long; the kills stand for them in the default run. A busy machine is no failure.
pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]
SIZE = 96 << 20
SMALL_FILE = 64 << 10


class Disk(Protocol):
    """Something that can be full."""

    folder: Path

    def fill(self, stack: Stack) -> None:
        """Leave no room."""
        ...

    def free(self, stack: Stack) -> None:
        """Give it back."""
        ...

    def remove(self) -> None:
        """Leave nothing behind."""
        ...


class SmallDisk:
    """A file system in memory, which only root may mount."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=True)

    def fill(self, _stack: Stack) -> None:
        with (self.folder / "ballast").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
            except OSError:
                pass

    def free(self, _stack: Stack) -> None:
        (self.folder / "ballast").unlink()

    def remove(self) -> None:
        subprocess.run(["umount", self.folder], check=True)


class SmallFiles:
    """For everybody else: the kernel lets the service's files grow no further."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, stack: Stack) -> None:
        # Less than one checkpoint takes: to a file with free pages of its own, its present size would be no limit.
        self._limit(stack, SMALL_FILE)

    def free(self, stack: Stack) -> None:
        self._limit(stack, resource.RLIM_INFINITY)

    def remove(self) -> None:
        pass

    def _limit(self, stack: Stack, size: int) -> None:
        serve = psutil.Process(stack.process.pid)
        for process in (serve, *serve.children(recursive=True)):
            try:
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            except (ProcessLookupError, PermissionError):  # gone, or Chromium's
                continue


ROOT_USER = os.geteuid() == 0
DISKS = [
    pytest.param(kind, id=kind.__name__, marks=[] if usual else [pytest.mark.full])
    for kind, usual in ((SmallDisk, ROOT_USER), (SmallFiles, not ROOT_USER))
    if kind is SmallFiles or ROOT_USER
]


@pytest.fixture(params=DISKS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    """A disk for the service's data."""
    made: Disk = request.param(tmp_path)
    yield made
    made.remove()


@pytest.fixture
def heavy(spec: dict[str, Any]) -> dict[str, Any]:
    """A net of 67,000 parameters, whose checkpoints of 0.3 MB each come in quick succession."""
    model = {
        "input": [2],
        "layers": [{"type": "dense", "units": 256, "activation": "relu"} for _ in range(2)]
        + [{"type": "dense", "units": 1}],
    }
    train = {"steps": 100, "batch_size": 16, "seed": 3}
    return {**spec, "model": model, "train": train, "checkpoint": {"every_steps": 5}}


def test_a_disk_that_is_full_for_a_while(disk: Disk, heavy: dict[str, Any]):
    """The attempt ends with that cause, which is not the job's fault; with room again, the job comes to the same bits."""
    stack = Stack({**SETTINGS, "min_free_bytes": "0"}, data_dir=disk.folder / "data")
    _log_elsewhere(stack)
    with stack:
        undisturbed = stack.client.train(heavy)
        weights = stack.client.download_weights(undisturbed["id"], stack.folder / "reference").read_bytes()
        job = stack.client.create_job(heavy)
        stack.wait_for_step(job, 10)
        disk.fill(stack)
        try:
            wait_until(lambda: _was_noticed(stack, job["id"]), "the full disk is noticed", SETTLE_S)
        finally:
            disk.free(stack)
        assert_settled(stack, [job["id"]], weights)
        ended = causes(stack.client.job(job["id"]))
        assert len(ended) > 1
        assert set(ended) <= {"no_storage", "lease_expired", "completed"}


def _log_elsewhere(stack: Stack) -> None:
    """On another disk, so that what could not be stored can be read."""
    logs = stack.folder / "logs"
    logs.mkdir()
    stack.data_dir.mkdir(mode=0o700)
    (stack.data_dir / "logs").symlink_to(logs)


def _was_noticed(stack: Stack, job_id: str) -> bool:
    """In the attempt's row, where that could be written, or in the worker's log."""
    log = (stack.data_dir / "logs" / "worker.log").read_text(errors="replace")
    return "no_storage" in causes(stack.client.job(job_id)) or "can't write its end" in log
