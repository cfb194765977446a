"""Which workers of this machine live: each holds a lock that the kernel drops when it ends, however it ends. Linux only.

A process id would not do: it is used again, and means something else in each container. Where the file can't be seen,
from another machine or container, nothing is known, and the lease of the worker's attempt decides.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote


class Presence:
    """A worker's place, held from its making to `leave`, or to the end of the process."""

    def __init__(self, worker_id: str) -> None:
        """Waits while somebody makes sure that a predecessor of that name is gone.

        Raises:
            PermissionError: somebody else made the folder of the places.
        """
        self._path = _place_of(worker_id)
        _make_folder(self._path.parent)
        while True:
            self._lock = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            if _is_at(self._lock, self._path):  # not what `vacated` has removed since
                return
            os.close(self._lock)

    def leave(self) -> None:
        """Give the place up, and leave no file."""
        self._path.unlink(missing_ok=True)
        os.close(self._lock)


@contextmanager
def vacated(worker_id: str) -> Generator[bool]:
    """Whether this worker, which was on this machine, is gone for sure; nobody takes its place during the block."""
    path = _place_of(worker_id)
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        gone = False
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            gone = _is_at(lock, path)
        yield gone
        if gone:
            path.unlink()
    finally:
        os.close(lock)


def _place_of(worker_id: str) -> Path:
    folder = Path(tempfile.gettempdir()) / f"texelgrad-workers-{os.geteuid()}"
    return folder / quote(worker_id, safe="")


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{folder} is not a folder of ours")


def _is_at(file: int, path: Path) -> bool:
    """Whether the open file is the one at that path."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), path.stat())
    return False
