"""The Celery application: one task, a hint that there may be work, and one foreman for each pool process."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import threading
from typing import Any

from celery import Celery, signals

from texelgrad.config import Settings
from texelgrad.hints import TASK
from texelgrad.processes import die_with_parent
from worker.foreman import Foreman

_log = logging.getLogger(__name__)
_SOCKET_S = 2.0
_SHUTDOWN_S = 15.0


class _Child:
    """What a pool process has: its foreman, once it has started."""

    foreman: Foreman | None = None


settings = Settings.load()
# Of the main process, and so of each of its pool processes in turn; host names and process ids may not be unique.
_worker_id = f"{socket.gethostname()}-{settings.queue}-{secrets.token_hex(4)}"
app = Celery("texelgrad", broker=settings.broker)
app.conf.update(
    task_ignore_result=True,
    task_acks_late=False,  # a hint carries nothing that could get lost
    task_default_queue=settings.queue,
    task_serializer="json",
    accept_content=["json"],
    worker_concurrency=1,
    worker_pool="prefork",
    worker_prefetch_multiplier=1,
    worker_disable_prefetch=True,  # a busy worker leaves hints to others
    worker_hijack_root_logger=False,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={"socket_timeout": _SOCKET_S, "socket_connect_timeout": _SOCKET_S},
)

# The read end signals its end of file in every child as soon as no write end is open: the main process closes its own
# when it is told to stop, and the kernel does when it dies. (A shared lock could be held by a child that was killed.)
_drained, _undrained = os.pipe()


@app.task(name=TASK)
def hint() -> None:
    """Look for work now."""
    if _Child.foreman is not None:
        _Child.foreman.hint()


@signals.worker_process_init.connect
def _start_foreman(**_: Any) -> None:
    die_with_parent()
    os.close(_undrained)
    foreman = Foreman(settings, _worker_id)
    _Child.foreman = foreman
    foreman.start()
    threading.Thread(target=_drain_at_end_of_file, args=(foreman,), name="drain", daemon=True).start()


def _drain_at_end_of_file(foreman: Foreman) -> None:
    os.read(_drained, 1)
    foreman.drain()


@signals.worker_shutting_down.connect
def _close_drain(**_: Any) -> None:
    with contextlib.suppress(OSError):  # told twice
        os.close(_undrained)


@signals.worker_process_shutdown.connect
def _stop_foreman(**_: Any) -> None:
    if _Child.foreman is not None:
        _Child.foreman.drain()
        _Child.foreman.join(_SHUTDOWN_S)


@signals.setup_logging.connect
def _log_plainly(**_: Any) -> None:
    logging.basicConfig(
        level=settings.log_level, format="%(asctime)s worker %(levelname)s %(name)s: %(message)s"
    )
