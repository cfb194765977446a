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


class PostgresServer:
    """A server in a folder of its own, which is there until `remove`."""

    def __init__(self, *, durable: bool = False) -> None:
        """`durable`: sync as in production, where something is measured."""
        self._durable = durable
        self._programs = _programs()
        # Not below pytest's folder: that is closed to other users, and a socket's path may have 107 bytes only.
        self.folder = Path(tempfile.mkdtemp(prefix="texelgrad-pg-"))
        self._data = self.folder / "data"
        if os.getuid() == 0:
            os.chown(self.folder, _user().pw_uid, _user().pw_gid)
        options = ["-U", "texelgrad", "-A", "trust", "-E", "UTF8", "--no-sync"]
        command = [*_as_unprivileged(), self._programs / "initdb", "-D", self._data, *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    @property
    def url(self) -> str:
        """The URL of a database on it, to be completed with its name: `url.format(name)`."""
        return f"postgresql+psycopg://texelgrad@/{{}}?host={self.folder}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = {
            "fsync": "on" if self._durable else "off",
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "port": "5432",
        }
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [*_as_unprivileged(), self._programs / "postgres", "-D", self._data, *settings],
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        deadline = time.monotonic() + 30
        is_ready = [self._programs / "pg_isready", "-q", "-h", self.folder]
        while subprocess.run(is_ready, check=False).returncode != 0:
            said = (self.folder / "log").read_text()
            assert self._server.poll() is None, f"PostgreSQL ended: {said}"
            assert time.monotonic() < deadline, f"PostgreSQL is not ready after 30 s: {said}"
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server without waiting for its clients."""
        self._server.send_signal(signal.SIGINT)
        try:
            self._server.wait(10)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()

    def remove(self) -> None:
        """Remove its folder."""
        shutil.rmtree(self.folder)


@contextmanager
def postgres_server() -> Generator[str]:
    """A running server; gives the URL of a database on it, to be completed with its name: `url.format(name)`."""
    server = PostgresServer()
    try:
        server.start()
        try:
            yield server.url
        finally:
            server.stop()
    finally:
        server.remove()
