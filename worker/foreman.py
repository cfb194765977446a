"""The one thread of a Celery child that does the work: keeps a spare runner, claims jobs, supervises one at a time."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from texelgrad import repository
from texelgrad.config import Settings
from texelgrad.db import Database, now_us
from texelgrad.domain import AttemptState, Cause
from texelgrad.engine import find_engine
from texelgrad.errors import Conflict, Fenced
from texelgrad.keeper import release, release_dead
from texelgrad.presence import Presence
from texelgrad.repository import Claim
from worker.attempt import Ending, supervise
from worker.profiles import profiles_root, sweep
from worker.runner_process import RunnerProcess

_log = logging.getLogger(__name__)
_TICK_S = 0.25
_SPARE_AFTER_S = (
    5.0  # a short job has the machine for itself; behind a long one the next browser starts meanwhile
)
_FINISH_DELAYS_S = (0.5, 1.0, 2.0, 4.0)
_BACKOFF_S = (5.0, 15.0, 60.0)  # between tries to get a browser that can train


class Foreman(threading.Thread):
    """Claims only with a proved spare in hand, so a machine whose browser or GPU is broken takes no job."""

    def __init__(self, settings: Settings, worker_id: str) -> None:
        super().__init__(name="foreman", daemon=True)
        self._settings = settings
        self._worker_id = worker_id
        self._db: Database
        self._profiles = profiles_root()
        self._engine_hash = find_engine().hash()
        self._presence: Presence | None = None
        self._spare: RunnerProcess | None = None
        self._fault: str | None = None
        self._faults = 0  # in a row
        self._retry_at = 0.0
        self._wake = threading.Event()
        self._draining = threading.Event()
        self._idle = threading.Condition()
        self._looks = 0  # for work, so far
        self._last_touch = 0.0

    def hint(self) -> None:
        """There may be work: return once the foreman has looked and found none, or has stopped.

        Blocking keeps the Celery child busy, so that further hints go to workers that are free.
        """
        with self._idle:
            seen = self._looks
            self._wake.set()
            self._idle.wait_for(lambda: self._looks > seen or self._draining.is_set() or not self.is_alive())

    def drain(self) -> None:
        """Take no more jobs; the present one gets a few seconds, then goes back to the queue."""
        self._draining.set()
        self._wake.set()

    def run(self) -> None:
        """Work until told to drain."""
        self._db = Database(self._settings.database)
        try:
            while not self._draining.is_set():
                try:
                    self._turn()
                except Exception:  # noqa: BLE001 - a worker that stops at the first surprise helps nobody
                    _log.exception("the foreman goes on after an error")
                    self._drop_spare()
                    time.sleep(1.0)
        finally:
            self._drop_spare()
            self._touch_quietly(state="stopped", attempt_id=None)
            if self._presence is not None:
                self._presence.leave()
            self._db.close()
            with self._idle:
                self._looks += 1
                self._idle.notify_all()

    def _turn(self) -> None:
        """One turn: see to the spare, look for work, do it or wait."""
        self._wake.clear()
        if self._presence is None:
            self._take_place()
        spare = self._ready_spare()
        if spare is None:
            self._wake.wait(_TICK_S)
            return
        claim, resting = self._claim()
        if claim is not None:
            self._work(spare, claim)
            return
        if not resting:  # else the hint under way keeps the Celery child from taking more of them from others
            with self._idle:
                self._looks += 1
                self._idle.notify_all()
        self._wake.wait(self._settings.idle_look_s)

    def _take_place(self) -> None:
        """Be the only process of this worker's id, and let go what predecessors on this machine died over."""
        presence = Presence(self._worker_id)
        try:
            release(self._db, self._worker_id)
            release_dead(self._db)  # where the keeper is on another machine, nobody else can tell
        except BaseException:
            presence.leave()
            raise
        self._presence = presence

    def _ready_spare(self) -> RunnerProcess | None:
        """The proved spare, if there is one by now; starts one, or notes why there is none."""
        if self._spare is None:
            if time.monotonic() < self._retry_at:
                self._touch_now_and_then()
                return None
            sweep(self._profiles)
            self._touch_quietly(state="broken" if self._fault else "starting", fault=self._fault)
            self._spare = self._start_runner()
        spare = self._spare
        if not spare.settled():
            self._touch_now_and_then()
            return None
        if spare.fault is not None:
            self._drop_spare()
            self._note_fault(f"{spare.fault.get('cause', 'runner_died')}: {spare.fault.get('message')}")
            return None
        if self._fault is not None or self._faults:
            _log.info("the browser proved itself again")
        self._fault, self._faults = None, 0
        return spare

    def _note_fault(self, message: str) -> None:
        delay_s = _BACKOFF_S[min(self._faults, len(_BACKOFF_S) - 1)]
        self._fault, self._faults = message, self._faults + 1
        self._retry_at = time.monotonic() + delay_s
        _log.error("this worker takes no jobs, next try in %g s: %s", delay_s, message)
        self._touch_quietly(state="broken", fault=message, attempt_id=None)

    def _claim(self) -> tuple[Claim | None, bool]:
        """Describe ourselves, and claim a job in the same transaction; its attempt is `starting` then.

        Answers the claim, if there is one, and whether we are asked to take none.
        """
        assert self._spare is not None
        assert self._spare.proof is not None
        proof = self._spare.proof
        device: dict[str, Any] = proof["device"]
        with self._db.write() as session:
            description = {
                "engine_hash": self._engine_hash,
                "renderer": device["renderer"],
                "gpu": None if device["software"] else device["renderer"],
                "software": device["software"],
                "proof": proof,
                "proved_at": now_us(session),
                "fault": None,
            }
            if self._touch(session, state="idle", attempt_id=None, **description):
                self._touch(session, state="draining")
                return None, True
            claim = repository.claim_next(
                session, self._settings.queue, self._worker_id, self._settings.lease_s
            )
            if claim is not None:
                attempt = (claim.attempt_id, claim.token)
                repository.advance_attempt(session, *attempt, AttemptState.STARTING)
                launch = {name: proof[name] for name in ("recipe", "chromium", "user", "sandbox")}
                record = {"renderer": device["renderer"], "software": device["software"], "launch": launch}
                repository.save_record(session, *attempt, record)
                self._touch(session, state="busy", attempt_id=claim.attempt_id)
            return claim, False

    def _work(self, runner: RunnerProcess, claim: Claim) -> None:
        """See the claim to its end with this runner, which no other claim gets."""
        self._spare = None
        _log.info("job %s: attempt %s starts", claim.job_id, claim.attempt_id)
        try:
            ending = supervise(
                runner,
                claim,
                self._db,
                self._settings,
                draining=self._draining.is_set,
                each_tick=self._during_work,
            )
            if ending is not None:
                self._finish(claim, ending)
        finally:
            if self._spare is None and not self._draining.is_set():
                self._spare = self._start_runner()  # starts while the old one stops
            runner.stop()
        if ending is None:
            _log.warning("attempt %s was taken from us", claim.attempt_id)
        elif ending.is_environment_fault:
            self._drop_spare()
            self._note_fault(f"{ending.cause}: {ending.message}")

    def _finish(self, claim: Claim, ending: Ending) -> None:
        """Write the end of the attempt; a database that is away gets a few tries, then the lease decides."""
        for delay_s in _FINISH_DELAYS_S:
            try:
                with self._db.write() as session:
                    state = repository.finish_attempt(
                        session,
                        claim.attempt_id,
                        claim.token,
                        ending.outcome,
                        ending.cause,
                        ending.message,
                        ending.failure,
                    )
                    self._touch(session, state="starting", attempt_id=None)  # idle with the next proof
            except SQLAlchemyError:
                _log.exception("attempt %s: can't write its end, next try in %g s", claim.attempt_id, delay_s)
                time.sleep(delay_s)
            except Fenced:
                _log.warning("attempt %s was ended by somebody else", claim.attempt_id)
                return
            except Conflict as error:  # it claims success, but its weights are missing
                ending = Ending(AttemptState.FAILED, Cause.INTERNAL, str(error))
            else:
                _log.info("job %s: %s (%s)", claim.job_id, state, ending.cause)
                return

    def _during_work(self, age_s: float) -> None:
        if self._spare is None and age_s > _SPARE_AFTER_S and not self._draining.is_set():
            self._spare = self._start_runner()
        self._touch_now_and_then()

    def _start_runner(self) -> RunnerProcess:
        return RunnerProcess(self._profiles, self._wake.set, silence_s=self._settings.start_s)

    def _drop_spare(self) -> None:
        if self._spare is not None:
            spare, self._spare = self._spare, None
            spare.stop(patience_s=0.0)  # it has nothing to save

    def _touch_now_and_then(self) -> None:
        if time.monotonic() - self._last_touch > self._settings.idle_look_s:
            self._touch_quietly()

    def _touch_quietly(self, **fields: Any) -> None:
        """Refresh the worker's row where nothing depends on it."""
        try:
            with self._db.write() as session:
                self._touch(session, **fields)
        except SQLAlchemyError:
            _log.exception("can't write the worker's row")

    def _touch(self, session: Session, **fields: Any) -> bool:
        self._last_touch = time.monotonic()
        queue = self._settings.queue
        host, pid = socket.gethostname(), os.getpid()
        return repository.touch_worker(session, self._worker_id, host=host, pid=pid, queue=queue, **fields)
