"""Linux processes by session: who is still alive in one, and how to end all of it in bounded time. Reads /proc only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_POLL_S = 0.01

DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""Command prefix: the kernel kills the process as soon as the thread that started it ends, however it ends."""

# Without CAP_SYS_ADMIN a write within 100 ms of any other such write on the machine is refused: EAGAIN.
_AT_PRIORITY = """
group=/proc/self/autogroup
if [ -w $group ]; then
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    { echo "$0" > $group; } 2> /dev/null && break
    sleep 0.1
  done
fi
exec nice -n "$0" -- "$@"
"""


def at_priority(nice: int) -> tuple[str, ...]:
    """Command prefix: the process, whatever it starts, and its session, which is to be its own, yield to those with smaller numbers.

    A kernel with autogroups shares the cores out among sessions first, and heeds the nice values of processes only within
    one: there the session needs a nice value too.

    Args:
        nice: 0 to 19, added to our own.
    """
    return ("sh", "-c", _AT_PRIORITY, str(nice))


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends; for processes that somebody else forked."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")


def session_members(session_id: int) -> list[int]:
    """Live processes of a session. Zombies are none: they hold nothing, and only their parent can reap them."""
    return [pid for pid in _all_pids() if _is_live_member(pid, session_id)]


def users_of(argument: str) -> list[int]:
    """Live processes that have `argument`, as a whole, on their command line."""
    wanted = _words(os.fsencode(argument))
    found: list[int] = []
    for pid in _all_pids():
        with contextlib.suppress(OSError):  # gone meanwhile
            if wanted in _words(Path(f"/proc/{pid}/cmdline").read_bytes()):  # a zombie's is empty
                found.append(pid)
    return found


def end_session(session_id: int, *, grace_s: float = 2.0, kill_s: float = 3.0) -> list[int]:
    """SIGTERM the session's leader group, wait, SIGKILL every member that is left, wait.

    Returns the processes that outlived even that (in uninterruptible sleep, say); normally none.
    """
    if grace_s > 0:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(session_id, signal.SIGTERM)
        if _wait_until_empty(lambda: session_members(session_id), grace_s):
            return []
    return _kill_all(lambda: session_members(session_id), kill_s)


def kill_users_of(argument: str, *, kill_s: float = 3.0) -> list[int]:
    """SIGKILL every process with `argument` on its command line; returns those that are left."""
    return _kill_all(lambda: users_of(argument), kill_s)


def _kill_all(find: Callable[[], list[int]], seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    while members := find():
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() >= deadline:
            return members
        time.sleep(_POLL_S)
    return []


def _wait_until_empty(find: Callable[[], list[int]], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while find():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _words(command_line: bytes) -> bytes:
    """Words between NULs; processes that set their own title, as Chromium's do, have spaces instead."""
    return b"\0" + command_line.replace(b" ", b"\0") + b"\0"


def _all_pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _is_live_member(pid: int, session_id: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:  # gone meanwhile
        return False
    # "pid (name) state ppid pgrp session ...": the name may hold spaces and brackets, so count from its end
    state, _ppid, _pgrp, session = stat[stat.rindex(b")") + 2 :].split(b" ", 4)[:4]
    return int(session) == session_id and state not in (b"Z", b"X")
