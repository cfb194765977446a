"""Supervision of one attempt from its claim to its end: lease, cancellation, limits, and the verdict on its end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from texelgrad import repository
from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.domain import POLICIES, AttemptState, Cause, Policy
from texelgrad.repository import Claim
from worker.runner_process import Event, RunnerProcess

_log = logging.getLogger(__name__)
_POLL_S = 1.0  # how often the database is asked for a cancellation
_TICK_S = 0.25  # how late a limit or a shutdown is noticed at most
_CANCEL_S = 3.0  # for the page to stop by itself
_DRAIN_S = 5.0  # for an attempt to end by itself when the worker is told to stop


@dataclass(frozen=True)
class Ending:
    """How an attempt ended."""

    outcome: AttemptState
    cause: Cause
    message: str | None = None
    failure: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_environment_fault(self) -> bool:
        """Whether this machine, not the job, is to blame."""
        return POLICIES.get(self.cause) == Policy.ENVIRONMENT and self.cause not in _BLAMELESS


def supervise(
    runner: RunnerProcess,
    claim: Claim,
    db: Database,
    settings: Settings,
    *,
    draining: Callable[[], bool],
    each_tick: Callable[[float], None],
) -> Ending | None:
    """Let the runner serve the claim; return how that ended, or None where the attempt is no longer ours.

    The lease is renewed only while the page makes progress, so that a hung one loses it even if we hang with it.

    Args:
        runner: proved, and not used before.
        claim: its attempt is `starting`.
        db: where leases and cancellations stand.
        settings: lease_s, stall_s, max_wall_s.
        draining: whether the worker is told to stop.
        each_tick: called a few times a second with the attempt's age in seconds.
    """
    watch = _Watch(claim, settings, draining)
    next_poll_s, next_renewal_s = _POLL_S, settings.lease_s / 3
    runner.serve(claim)
    while True:
        event = runner.next_event(_TICK_S)
        if event is not None:
            if event["event"] != "progress":
                return _ending(event, cancelled=watch.cancelled_s is not None)
            watch.progressed()
        if (ending := watch.overdue()) is not None:
            return ending
        age_s = watch.age_s
        if age_s >= next_poll_s:
            next_poll_s = age_s + _POLL_S
            renew = age_s >= next_renewal_s
            if renew:
                next_renewal_s = age_s + settings.lease_s / 3
            try:
                if renew and not _renew(db, claim, settings.lease_s):
                    return None
                with db.read() as session:
                    if repository.cancel_requested(session, claim.attempt_id) and watch.cancel():
                        runner.cancel()
            except SQLAlchemyError:  # it is away: training goes on, and the lease decides for how long
                _log.exception("attempt %s: can't reach the database", claim.attempt_id)
        each_tick(age_s)


class _Watch:
    """The clocks of one attempt, in seconds since it began."""

    def __init__(self, claim: Claim, settings: Settings, draining: Callable[[], bool]) -> None:
        self._began = time.monotonic()
        self._wall_s = float(min(claim.spec["limits"]["wall_s"] or settings.max_wall_s, settings.max_wall_s))
        self._stall_s = settings.stall_s
        self._draining = draining
        self._progressed_s = 0.0
        self._drained_s: float | None = None
        self.cancelled_s: float | None = None

    @property
    def age_s(self) -> float:
        """How long the attempt has run."""
        return time.monotonic() - self._began

    def progressed(self) -> None:
        """Note a sign of life."""
        self._progressed_s = self.age_s

    def cancel(self) -> bool:
        """Note that cancellation is asked for; False where that was known."""
        if self.cancelled_s is not None:
            return False
        self.cancelled_s = self.age_s
        return True

    def overdue(self) -> Ending | None:
        """The end of the attempt, where some time is up."""
        age_s = self.age_s
        if age_s - self._progressed_s > self._stall_s:
            return Ending(AttemptState.LOST, Cause.STALLED, f"no progress for {self._stall_s:g} s")
        if age_s > self._wall_s:
            return Ending(
                AttemptState.FAILED, Cause.WALL_LIMIT, f"the limit of {self._wall_s:g} s is used up"
            )
        if self.cancelled_s is not None and age_s - self.cancelled_s > _CANCEL_S:
            return Ending(
                AttemptState.CANCELLED, Cause.CANCELLED, "the page was ended, since it did not stop"
            )
        if self._draining():
            self._drained_s = age_s if self._drained_s is None else self._drained_s
            if age_s - self._drained_s > _DRAIN_S:
                return Ending(AttemptState.LOST, Cause.WORKER_STOPPED, "the worker was told to stop")
        return None


def _renew(db: Database, claim: Claim, lease_s: float) -> bool:
    with db.write() as session:
        return repository.renew_lease(session, claim.attempt_id, claim.token, lease_s)


def _ending(event: Event, *, cancelled: bool) -> Ending | None:
    """What the runner's last event means; None: the attempt is no longer ours."""
    match event["event"]:
        case "fenced":
            return None
        case "saved":
            return Ending(AttemptState.SUCCEEDED, Cause.COMPLETED)
        case "failed":
            cause = Cause(event["code"]) if event["code"] in list(Cause) else Cause.INTERNAL
            if cancelled:  # whatever the page said while it stopped
                return Ending(AttemptState.CANCELLED, Cause.CANCELLED)
            outcome = AttemptState.LOST if cause in _LOSSES else AttemptState.FAILED
            return Ending(outcome, cause, event["message"], event["failure"])
        case _:
            return Ending(AttemptState.LOST, Cause.RUNNER_DIED, event.get("message"))


_LOSSES = frozenset({Cause.PAGE_CRASHED, Cause.RUNNER_DIED, Cause.NO_STORAGE, Cause.CHECKPOINT_DAMAGED})
_BLAMELESS = frozenset({Cause.WORKER_STOPPED, Cause.CHECKPOINT_DAMAGED})
"""Causes that are neither the job's fault nor the machine's."""
