"""A private PostgreSQL server for tests: its own folder, a Unix socket, an unprivileged user, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def _programs() -> Path:
    """The folder of initdb and postgres: Debian's newest, else where PATH has them."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if debian:
        return debian[-1].parent
    found = shutil.which("initdb")
    assert found, "PostgreSQL is needed: apt-get install postgresql"
    return Path(found).resolve().parent


def _as_unprivileged() -> list[str]:
    """What to put before a command so that it runs unprivileged (PostgreSQL refuses root) and dies with us."""
    prefix = ["setpriv", "--pdeathsig", "INT"]
    if os.getuid() != 0:
        return prefix
    user = _user()
    return [*prefix, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _user() -> pwd.struct_passwd:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return pwd.getpwnam("postgres" if "postgres" in names else "nobody")


@contextmanager
def postgres_server() -> Generator[str]:
    """A running server; gives the URL of a database on it, to be completed with its name: `url.format(name)`."""
    programs = _programs()
    # Not below pytest's folder: that is closed to other users, and a socket's path may have 107 bytes only.
    folder = Path(tempfile.mkdtemp(prefix="texelgrad-pg-"))
    try:
        if os.getuid() == 0:
            os.chown(folder, _user().pw_uid, _user().pw_gid)
        data = folder / "data"
        initdb = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "texelgrad",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run([*_as_unprivileged(), *initdb], check=True, capture_output=True, cwd=folder)
        options = {
            "fsync": "off",
            "listen_addresses": "",
            "unix_socket_directories": str(folder),
            "port": "5432",
        }
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [*_as_unprivileged(), programs / "postgres", "-D", data, *settings],
                stdout=log,
                stderr=log,
                cwd=folder,
            )
        try:
            _wait_ready(programs, folder, server)
            yield f"postgresql+psycopg://texelgrad@/{{}}?host={folder}"
        finally:
            server.send_signal(signal.SIGINT)
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
    finally:
        shutil.rmtree(folder)


def _wait_ready(programs: Path, folder: Path, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while subprocess.run([programs / "pg_isready", "-q", "-h", folder], check=False).returncode != 0:
        log = (folder / "log").read_text()
        assert server.poll() is None, f"PostgreSQL ended: {log}"
        assert time.monotonic() < deadline, f"PostgreSQL is not ready after 30 s: {log}"
        time.sleep(0.05)
