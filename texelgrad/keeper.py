"""The keeper: of all that run, one holds the lease and does the housekeeping.

`python -m texelgrad.keeper` runs one. Each round it releases what dead workers
held, reaps expired leases, aborts overdue jobs, tops up hints and deletes what nobody can read any more.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType

from texelgrad import repository
from texelgrad.config import Settings
from texelgrad.db import Database, now_us
from texelgrad.errors import Invalid, fault_line
from texelgrad.hints import Publisher
from texelgrad.presence import vacated
from texelgrad.repository.sweep import sweep_artifacts
from texelgrad.webhooks import Sender

_log = logging.getLogger(__name__)
_LEASE = "keeper"
_LEASE_S = 10.0
_SWEEP_CHUNKS = 16  # deleted a round: one large DELETE would block all writers for seconds
_SWEEP_PAGES = 8192  # given back after that; more than those chunks have
_FORGET_US = 7 * 24 * 3600 * 1_000_000  # rows of workers that are gone


class Keeper:
    """Does rounds until it is stopped."""

    def __init__(self, db: Database, publisher: Publisher, settings: Settings) -> None:
        self._db, self._publisher, self._settings = db, publisher, settings
        self._webhooks = Sender(db, settings)
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{id(self)}"

    def round(self) -> bool:
        """One round of work; False where another keeper holds the lease. A duty that fails does not stop the others."""
        with self._db.write() as session:
            if not repository.take_lease(session, _LEASE, self._holder, _LEASE_S):
                return False
        duties = (self._release, self._reap, self._abort, self._top_up, self._sweep, self._webhooks.round)
        for duty in duties:
            self._try(duty)
        return True

    def run(self, stop: threading.Event) -> None:
        """Do rounds until `stop` is set, then give up the lease and send what is under way."""
        while not stop.is_set():
            self._try(self.round)
            stop.wait(self._settings.keeper_period_s)
        self._try(self._resign)  # first: a receiver may take longer to answer than we are let live
        self._webhooks.close()

    def _try(self, duty: Callable[[], object]) -> None:
        try:
            duty()
        except Exception:  # noqa: BLE001 - the database or the broker may be away for a while
            _log.exception("keeper: %s failed", getattr(duty, "__name__", duty))

    def _resign(self) -> None:
        with self._db.write() as session:
            repository.release_lease(session, _LEASE, self._holder)

    def _release(self) -> None:
        release_dead(self._db)

    def _reap(self) -> None:
        with self._db.write() as session:
            for job_id in repository.reap_expired(session):
                _log.warning("keeper: a worker lost job %s", job_id)

    def _abort(self) -> None:
        with self._db.write() as session:
            repository.abort_overdue(session)

    def _top_up(self) -> None:
        with self._db.read() as session:
            counts = repository.queued_counts(session)
        for queue, queued in counts.items():
            for _ in range(min(queued, self._settings.max_hints) - self._publisher.waiting(queue)):
                self._publisher.send(queue)

    def _sweep(self) -> None:
        with self._db.write() as session:
            swept = sweep_artifacts(session, _SWEEP_CHUNKS)
            repository.forget_workers(session, now_us(session) - _FORGET_US)
        if swept:
            self._db.release_pages(_SWEEP_PAGES)


def release_dead(db: Database) -> None:
    """Let go what dead workers of this machine held, without waiting for their leases."""
    with db.read() as session:
        here = repository.workers_on(session, socket.gethostname())
    for worker_id in here:
        with vacated(worker_id) as gone:
            if gone:
                release(db, worker_id)


def release(db: Database, worker_id: str) -> None:
    """End what a worker that is gone for sure has left unfinished, and say so in its row."""
    with db.write() as session:
        jobs = repository.release_attempts(session, worker_id)
        repository.mark_stopped(session, worker_id, "its process ended without a word")
    for job_id in jobs:
        _log.warning("worker %s died in the middle of job %s", worker_id, job_id)


def main() -> None:
    """Run a keeper until SIGTERM or SIGINT."""
    try:
        settings = Settings.load()
    except Invalid as error:
        sys.exit("\n".join(map(fault_line, error.faults)))
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    stop = threading.Event()

    def _stop(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    db, publisher = Database(settings.database), Publisher(settings.broker)
    try:
        Keeper(db, publisher, settings).run(stop)
    finally:
        publisher.close()
        db.close()


if __name__ == "__main__":
    main()
