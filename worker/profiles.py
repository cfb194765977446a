"""Folders for Chromium profiles: each is locked by its owner, so that what a killed owner left can be told and removed."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import secrets
import shutil
import stat
import tempfile
import time
from pathlib import Path

from texelgrad.processes import kill_users_of

_log = logging.getLogger(__name__)
_REMOVE_S = 3.0
_PUBLIC_FOLDERS = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - where TMPDIR is a private one; ours are locked


def profiles_root() -> Path:
    """Where profiles live: in a temporary folder, since Chromium's user can't enter our data folder.

    Raises:
        PermissionError: somebody else made a folder of that name.
    """
    candidates = [Path(tempfile.gettempdir()), *_PUBLIC_FOLDERS]
    parent = next((path for path in candidates if os.geteuid() != 0 or _open_to_all(path)), candidates[0])
    root = parent / f"texelgrad-profiles-{os.geteuid()}"
    root.mkdir(mode=0o711, exist_ok=True)
    found = root.lstat()
    if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
        raise PermissionError(f"{root} is not a folder of ours")
    return root


def _open_to_all(folder: Path) -> bool:
    """Whether every user may enter the folder."""
    return all(path.is_dir() and path.stat().st_mode & stat.S_IXOTH for path in (folder, *folder.parents))


class ProfileFolder:
    """A locked folder around one profile; the kernel drops the lock when its owner ends, however it ends."""

    def __init__(self, root: Path) -> None:
        while True:
            self._folder = root / secrets.token_hex(8)
            self._folder.mkdir(mode=0o711)
            with contextlib.suppress(FileNotFoundError):
                self._lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                if self._folder.exists():  # a sweep may have come between
                    return
                os.close(self._lock)

    @property
    def profile(self) -> Path:
        """The folder to give to Chromium."""
        return self._folder / "profile"

    def remove(self) -> list[int]:
        """Kill what still uses the profile and remove it. Returns processes that could not be killed: normally []."""
        left = _remove(self._folder)
        os.close(self._lock)
        return left


def sweep(root: Path) -> None:
    """Remove every folder whose owner is gone, and what still runs on it."""
    for folder in root.iterdir():
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # its owner lives
            else:
                _log.warning("removing the profile of a worker that is gone: %s", folder)
                _remove(folder)
            finally:
                os.close(lock)


def _remove(folder: Path) -> list[int]:
    left = kill_users_of(f"--user-data-dir={folder / 'profile'}")
    deadline = time.monotonic() + _REMOVE_S
    while True:  # what dies may write a last file meanwhile
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists() or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    if left or folder.exists():
        _log.error(
            "profile %s: processes %s left, folder %s", folder, left, "left" if folder.exists() else "gone"
        )
    return left
