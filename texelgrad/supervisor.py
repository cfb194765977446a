"""What `texelgrad serve` runs: redis-server, API, worker and keeper of one machine, restarted when they die. Linux only."""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TextIO

import httpx
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import OperationalError

from texelgrad.config import Settings
from texelgrad.db import Database, upgrade
from texelgrad.errors import Unavailable
from texelgrad.processes import DIE_WITH_PARENT, end_session

_log = logging.getLogger(__name__)
_PROJECT = Path(__file__).resolve().parent.parent
_TICK_S = 0.2
_START_S = 30.0
_LONGEST_BACKOFF_S = 30.0
_STEADY_S = 60.0  # a part that has run so long starts with the shortest backoff again
_LOG_BYTES = 16 << 20
LOCK = "serve.lock"  # in the data folder; holds process id and address of the service that runs there
_OTHER_THREADS = 16  # of the API, besides those that its event streams hold

REDIS_MISSING = (
    "No redis-server on PATH. Install it (Debian: `apt-get install redis-server`), "
    "or set TEXELGRAD_BROKER_URL to a Redis that runs already."
)


@dataclass
class Part:
    """One supervised process, in a session of its own."""

    name: str
    command: Sequence[str]
    stop_s: float  # after which SIGTERM becomes SIGKILL
    pass_fds: Sequence[int] = ()
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    restart_at: float = 0.0
    backoff_s: float = 0.5


class Supervisor:
    """Starts the parts in their order, keeps them up until told to stop, stops them."""

    def __init__(self, settings: Settings, say: Callable[[str], None]) -> None:
        """`say` shows a line to the user; what the parts print goes to data_dir/logs."""
        self._settings = settings
        self._say = say
        self._stop = threading.Event()
        self._parts: list[Part] = []
        self._logs = settings.data_dir / "logs"

    def run(self) -> None:
        """Serve until SIGTERM, SIGINT or SIGHUP.

        Raises:
            Unavailable: something is missing; says how to get it.
        """
        _check_checkout()
        redis = None if self._settings.broker_url else _redis_program()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        # The database and the uploads in it are nobody else's business; each file in the folder is as private.
        self._settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _only_one(self._settings.data_dir) as lock, _listen(self._settings) as listener:
            address = _address(listener)
            lock.write(f"{os.getpid()} {address}\n")
            lock.flush()
            _migrate(self._settings)
            try:
                if redis:
                    self._start(Part("redis", _redis_command(redis, self._settings), stop_s=5.0))
                    self._wait_for("redis", lambda: _redis_answers(self._settings))
                self._start(_api(self._settings, listener))
                self._start(Part("worker", _worker_command(), stop_s=30.0))
                self._start(Part("keeper", [sys.executable, "-m", "texelgrad.keeper"], stop_s=5.0))
                self._wait_for("api", lambda: _api_answers(address))
                if not self._stop.is_set():
                    self._say(f"texelgrad is ready: {address}")
                self._keep_up()
            finally:
                self._stop_all()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stop.set()

    def _keep_up(self) -> None:
        while not self._stop.wait(_TICK_S):
            self._restart_the_dead()

    def _restart_the_dead(self) -> None:
        now = time.monotonic()
        for part in self._parts:
            if part.process is not None and part.process.poll() is not None:
                if now - part.started_at > _STEADY_S:
                    part.backoff_s = 0.5
                status = part.process.returncode
                self._say(f"{part.name} ended with status {status}, next start in {part.backoff_s:g} s")
                end_session(part.process.pid, grace_s=0)  # what it may have left
                part.process, part.restart_at = None, now + part.backoff_s
                part.backoff_s = min(2 * part.backoff_s, _LONGEST_BACKOFF_S)
            elif part.process is None and now >= part.restart_at:
                self._launch(part)

    def _start(self, part: Part) -> None:
        self._parts.append(part)
        self._launch(part)

    def _launch(self, part: Part) -> None:
        with _open_log(self._logs / f"{part.name}.log") as log:
            part.process = subprocess.Popen(
                [*DIE_WITH_PARENT, *part.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=_PROJECT,
                env=_environment(self._settings),
                start_new_session=True,  # Ctrl-C in the terminal is ours alone
                pass_fds=part.pass_fds,
            )
        part.started_at = time.monotonic()

    def _wait_for(self, name: str, answers: Callable[[], bool]) -> None:
        """Wait until a part answers; restarts go on meanwhile.

        Raises:
            Unavailable: it did not in time; shows the end of its log.
        """
        deadline = time.monotonic() + _START_S
        while not answers():
            if self._stop.wait(0.05):
                return
            self._restart_the_dead()
            if time.monotonic() > deadline:
                log = self._logs / f"{name}.log"
                tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
                raise Unavailable(f"{name} did not answer within {_START_S:g} s. The end of {log}:\n{tail}")

    def _stop_all(self) -> None:
        """Stop the parts together, and the broker after those that use it."""
        users = [part for part in self._parts if part.name != "redis"]
        for parts in (users, [part for part in self._parts if part.name == "redis"]):
            running = [(part, part.process) for part in parts if part.process is not None]
            for _, process in running:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
            for part, process in running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(part.stop_s)
                left = end_session(process.pid, grace_s=0)
                process.wait()
                if left:
                    _log.error("%s: processes %s could not be ended", part.name, left)


def _migrate(settings: Settings) -> None:
    database = Database(settings.database)
    try:
        upgrade(database)
    except OperationalError as error:
        shown = database.url.render_as_string(hide_password=True)
        raise Unavailable(f"The database {shown} can't be used: {error.orig}") from error
    finally:
        database.close()


def _check_checkout() -> None:
    for package in ("api", "worker"):
        if not (_PROJECT / package).is_dir():
            raise Unavailable(
                f"{_PROJECT} holds no {package}/: the service runs from a checkout of texelgrad or its image, "
                "the installed wheel is client and engine only."
            )


def _redis_program() -> str:
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is None:
        raise Unavailable(REDIS_MISSING)
    return found


def _redis_command(program: str, settings: Settings) -> list[str]:
    folder = settings.data_dir / "redis"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings.redis_socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    options = {
        "port": "0",
        "unixsocket": str(settings.redis_socket),
        "unixsocketperm": "600",
        "dir": str(folder),
        "appendonly": "yes",
        "save": "",
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
    }
    return [program, *(word for name, value in options.items() for word in (f"--{name}", value))]


def _redis_answers(settings: Settings) -> bool:
    with Redis(unix_socket_path=str(settings.redis_socket), socket_timeout=1.0) as redis:
        try:
            return bool(redis.ping())
        except RedisError:
            return False


def _api(settings: Settings, listener: socket.socket) -> Part:
    """The API on a socket that we hold, so that a restart refuses no connection."""
    threads = settings.max_streams + _OTHER_THREADS
    command = [sys.executable, "-m", "gunicorn", "--worker-class", "gthread", "--workers", "1"]
    command += ["--threads", str(threads), "--bind", f"fd://{listener.fileno()}", "--timeout", "120"]
    # Idle connections hold no thread; closed after gunicorn's 2 s, they would break under clients that use them again.
    command += ["--keep-alive", "75", "--graceful-timeout", "3", "--no-control-socket"]
    command += ["api.app:create_app()"]
    return Part("api", command, stop_s=10.0, pass_fds=[listener.fileno()])


def _worker_command() -> list[str]:
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return [sys.executable, "-m", "celery", "-A", "worker.app", "worker", *quiet]


def _environment(settings: Settings) -> Mapping[str, str]:
    """The settings in force, so that every part reads what we read."""
    chosen = settings.model_dump(mode="json", include=settings.model_fields_set)
    ours = {
        f"TEXELGRAD_{name.upper()}": value if isinstance(value, str) else json.dumps(value)
        for name, value in chosen.items()
    }
    return {**os.environ, **ours, "PYTHONUNBUFFERED": "1"}


def _api_answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}readyz", timeout=2.0, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


@contextmanager
def _listen(settings: Settings) -> Generator[socket.socket]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            raise Unavailable(
                f"Can't listen on {settings.host}:{settings.port}: {error.strerror}. "
                "Is another texelgrad running? Choose another port with --port."
            ) from error
        listener.listen(128)
        yield listener


@contextmanager
def _only_one(data_dir: Path) -> Generator[TextIO]:
    """Two services in one folder would fight over its redis and its profiles. The file tells who is there."""
    with (data_dir / LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid, address = running_service(data_dir) or ("?", "?")
            raise Unavailable(
                f"Another `texelgrad serve` runs in {data_dir}: process {pid}, at {address}. "
                "Stop it, or choose another --data-dir."
            ) from error
        lock.truncate(0)
        yield lock


def running_service(data_dir: Path) -> tuple[int, str] | None:
    """Process id and address of the service that runs in a folder; None where there is none, or it only starts."""
    try:
        with (data_dir / LOCK).open() as lock:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
            pid, _, address = lock.read().strip().partition(" ")
            return (int(pid), address) if address else None
    except FileNotFoundError:
        return None


@contextmanager
def _open_log(path: Path) -> Generator[int]:
    if path.exists() and path.stat().st_size > _LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        yield log
    finally:
        os.close(log)
