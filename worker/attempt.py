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
        return POLICIES.get(self.cause) == Policy.ENVIRONMENT and self.cause != Cause.WORKER_STOPPED


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
        settings: lease_s and stall_s.
        draining: whether the worker is told to stop.
        each_tick: called a few times a second with the attempt's age in seconds.
    """
    started = last_progress = time.monotonic()
    next_poll, next_renewal = started + _POLL_S, started + settings.lease_s / 3
    cancelled_at: float | None = None
    draining_at: float | None = None
    wall_s = float(claim.spec["limits"]["wall_s"] or settings.max_wall_s)
    runner.serve(claim)
    while True:
        event = runner.next_event(_TICK_S)
        now = time.monotonic()
        if event is not None:
            last_progress = now
            if event["event"] != "progress":
                return _ending(event, cancelled=cancelled_at is not None)
        if now - last_progress > settings.stall_s:
            message = f"no progress for {settings.stall_s:g} s"
            return Ending(AttemptState.LOST, Cause.STALLED, message)
        if now - started > wall_s:
            return Ending(AttemptState.FAILED, Cause.WALL_LIMIT, f"limits.wall_s = {wall_s:g} is used up")
        if cancelled_at is not None and now - cancelled_at > _CANCEL_S:
            return Ending(
                AttemptState.CANCELLED, Cause.CANCELLED, "the page did not stop in time and was ended"
            )
        if draining():
            draining_at = draining_at or now
            if now - draining_at > _DRAIN_S:
                return Ending(AttemptState.LOST, Cause.WORKER_STOPPED, "the worker was told to stop")
        if now >= next_poll:
            next_poll = now + _POLL_S
            try:
                if now >= next_renewal:
                    next_renewal = now + settings.lease_s / 3
                    with db.write() as session:
                        if not repository.renew_lease(
                            session, claim.attempt_id, claim.token, settings.lease_s
                        ):
                            return None
                with db.read() as session:
                    wanted = repository.cancel_requested(session, claim.attempt_id)
            except SQLAlchemyError:  # it is away: training goes on, and the lease decides for how long
                _log.exception("attempt %s: can't reach the database", claim.attempt_id)
                wanted = False
            if wanted and cancelled_at is None:
                cancelled_at = now
                runner.cancel()
        each_tick(now - started)


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


_LOSSES = frozenset({Cause.PAGE_CRASHED, Cause.RUNNER_DIED})
