"""Ending sessions of real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from texelgrad.processes import (
    DIE_WITH_PARENT,
    at_priority,
    end_session,
    kill_users_of,
    session_members,
    users_of,
)

# a leader that ignores SIGTERM where told to, with a child; both sleep
_FAMILY = """
import os, signal, sys, time
if sys.argv[1] == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork()
os.write(1, b"up\\n")
time.sleep(60)
"""


def _family(manner: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _FAMILY, manner], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    for _ in range(2):
        assert process.stdout.readline() == "up\n"
    return process


def _sleeper(argument: str) -> subprocess.Popen[str]:
    """A process with this argument, which has started."""
    code = "import time; print('up', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code, argument], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def test_a_session_ends_by_sigterm():
    """Leader and child are members, end at once, and the zombie that is left until we reap it does not count."""
    with _family("polite") as process:
        assert len(session_members(process.pid)) == 2
        assert end_session(process.pid, grace_s=3600) == []  # which nobody waits for
        assert session_members(process.pid) == []
        assert process.wait() == -signal.SIGTERM


def test_a_session_that_ignores_sigterm_is_killed():
    """After the grace SIGKILL comes, for every member."""
    with _family("stubborn") as process:
        assert end_session(process.pid, grace_s=0.2) == []
        assert process.wait() == -signal.SIGKILL


def test_members_are_ended_after_their_leader_is_gone():
    """An orphan keeps its session, so it is found without its leader."""
    with _family("polite") as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert len(session_members(process.pid)) == 1
        assert end_session(process.pid) == []


def test_ending_what_is_not_there():
    """A session without members is no error."""
    with subprocess.Popen(["true"], start_new_session=True) as process:
        process.wait()
        assert end_session(process.pid) == []


def test_users_of_an_argument(tmp_path: Path):
    """Processes are found by a whole argument, not by a part of one."""
    mark = f"--mark={tmp_path}"
    with _sleeper(mark) as process:
        assert users_of(mark) == [process.pid]
        assert users_of(mark[:-1]) == []
        assert kill_users_of(mark) == []
        assert process.wait() == -signal.SIGKILL


def test_users_that_set_their_own_title_are_found():
    """Chromium's children join their arguments with spaces; a user of the profile is found all the same."""
    with _sleeper("a --mark=x/y b") as process:
        assert users_of("--mark=x/y") == [process.pid]
        assert users_of("--mark=x") == []
        process.kill()


def test_a_child_dies_with_its_parent():
    """The prefix makes the kernel kill the child when the parent is killed."""
    code = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([*{DIE_WITH_PARENT!r}, 'sleep', '60'])\n"
        "while open(f'/proc/{child.pid}/comm').read() != 'sleep\\n': time.sleep(0.01)\n"  # setpriv has asked the kernel
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.name() == "sleep"
        parent.kill()
        deadline = time.monotonic() + 30
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline, "it would sleep for a minute"
            time.sleep(0.01)


def test_sessions_that_start_together_all_get_their_priority():
    """Also where the kernel refuses the second one's at first, as it does to users who are not the administrator."""
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
    show = ("sh", "-c", "nice; cat /proc/self/autogroup 2> /dev/null; true")
    command = [*user, *at_priority(7), *show]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) for _ in range(3)
    ]
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    for process in started:
        nice, *group = process.communicate()[0].splitlines()
        assert process.returncode == 0
        assert int(nice) == ours + 7
        assert [line.split()[-1] for line in group] in ([], ["7"])
