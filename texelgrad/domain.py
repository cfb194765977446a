"""States of jobs and attempts, their legal transitions, causes of an end, and ids. Standard library only."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from enum import StrEnum


class JobState(StrEnum):
    """Where a job stands; the last four are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABORTED = "aborted"


class AttemptState(StrEnum):
    """Where one try at a job stands; the last four are final."""

    CLAIMED = "claimed"
    STARTING = "starting"
    TRAINING = "training"
    SAVING = "saving"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


JOB_TRANSITIONS: Mapping[JobState, frozenset[JobState]] = {
    JobState.QUEUED: frozenset({JobState.RUNNING, JobState.CANCELLED, JobState.ABORTED}),
    JobState.RUNNING: frozenset({JobState.QUEUED, JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}),
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELLED: frozenset(),
    JobState.ABORTED: frozenset(),
}

_LOSING = frozenset({AttemptState.FAILED, AttemptState.CANCELLED, AttemptState.LOST})
ATTEMPT_TRANSITIONS: Mapping[AttemptState, frozenset[AttemptState]] = {
    AttemptState.CLAIMED: _LOSING | {AttemptState.STARTING},
    AttemptState.STARTING: _LOSING | {AttemptState.TRAINING},
    AttemptState.TRAINING: _LOSING | {AttemptState.SAVING},
    AttemptState.SAVING: _LOSING | {AttemptState.SUCCEEDED},
    AttemptState.SUCCEEDED: frozenset(),
    AttemptState.FAILED: frozenset(),
    AttemptState.CANCELLED: frozenset(),
    AttemptState.LOST: frozenset(),
}

FINAL_JOB_STATES = frozenset(state for state, following in JOB_TRANSITIONS.items() if not following)
LIVE_ATTEMPT_STATES = frozenset(state for state, following in ATTEMPT_TRANSITIONS.items() if following)


def job_may(old: JobState, new: JobState) -> bool:
    """Whether a job may go from `old` to `new`; staying is no transition."""
    return new in JOB_TRANSITIONS[old]


def attempt_may(old: AttemptState, new: AttemptState) -> bool:
    """Whether an attempt may go from `old` to `new`; staying is no transition."""
    return new in ATTEMPT_TRANSITIONS[old]


class Policy(StrEnum):
    """What a lost or failed attempt means for its job."""

    RETRY = "retry"  # counts as a try; back to the queue while tries remain
    FAIL = "fail"  # trying again would end the same way
    ENVIRONMENT = (
        "environment"  # not the job's fault: back to the queue, uncounted; the worker stops claiming
    )


class Cause(StrEnum):
    """Why an attempt or a job ended; the codes that pages report are among them (docs/page-protocol.md)."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    DEADLINE = "deadline"
    # said by the page
    NO_WEBGL2 = "no_webgl2"
    NO_FLOAT_TARGETS = "no_float_targets"
    SOFTWARE_REFUSED = "software_refused"
    CONTEXT_LOST = "context_lost"
    GL_ERROR = "gl_error"
    SHADER_ERROR = "shader_error"
    INTERNAL = "internal"
    SPEC_INVALID = "spec_invalid"
    DATA_INVALID = "data_invalid"
    TOO_LARGE = "too_large"
    NON_FINITE_LOSS = "non_finite_loss"
    ABORTED = "aborted"
    # said by the worker and the keeper
    PAGE_CRASHED = "page_crashed"
    RUNNER_DIED = "runner_died"
    STALLED = "stalled"
    LEASE_EXPIRED = "lease_expired"
    WORKER_DIED = "worker_died"
    NO_STORAGE = "no_storage"
    CHECKPOINT_DAMAGED = "checkpoint_damaged"
    WEIGHTS_DAMAGED = "weights_damaged"
    DATA_DAMAGED = "data_damaged"
    NO_BROWSER = "no_browser"
    NO_RENDERER = "no_renderer"
    WORKER_STOPPED = "worker_stopped"
    WALL_LIMIT = "wall_limit"


POLICIES: Mapping[Cause, Policy] = {
    Cause.NO_WEBGL2: Policy.ENVIRONMENT,
    Cause.NO_FLOAT_TARGETS: Policy.ENVIRONMENT,
    Cause.SOFTWARE_REFUSED: Policy.ENVIRONMENT,
    Cause.CONTEXT_LOST: Policy.RETRY,
    Cause.GL_ERROR: Policy.RETRY,
    Cause.SHADER_ERROR: Policy.FAIL,
    Cause.INTERNAL: Policy.FAIL,
    Cause.SPEC_INVALID: Policy.FAIL,
    Cause.DATA_INVALID: Policy.FAIL,
    Cause.TOO_LARGE: Policy.FAIL,
    Cause.NON_FINITE_LOSS: Policy.FAIL,
    Cause.ABORTED: Policy.FAIL,
    Cause.PAGE_CRASHED: Policy.RETRY,
    Cause.RUNNER_DIED: Policy.RETRY,
    Cause.STALLED: Policy.RETRY,
    Cause.LEASE_EXPIRED: Policy.RETRY,
    Cause.WORKER_DIED: Policy.RETRY,
    Cause.NO_STORAGE: Policy.ENVIRONMENT,
    Cause.CHECKPOINT_DAMAGED: Policy.ENVIRONMENT,
    Cause.WEIGHTS_DAMAGED: Policy.FAIL,
    Cause.DATA_DAMAGED: Policy.FAIL,
    Cause.NO_BROWSER: Policy.ENVIRONMENT,
    Cause.NO_RENDERER: Policy.ENVIRONMENT,
    Cause.WORKER_STOPPED: Policy.ENVIRONMENT,
    Cause.WALL_LIMIT: Policy.FAIL,
}
"""What follows from each cause that ends an attempt badly; `completed`, `cancelled`, `deadline` decide by themselves."""

MAX_ENVIRONMENT_FAULTS = 10
"""A job that so many workers could not even start fails with the last cause, so that none circulates for ever."""


def environment_delay_s(faults: int) -> int:
    """Seconds until a job may be claimed again after its `faults`-th environment fault: 1, 2, 4, ... 60."""
    return min(2 ** (faults - 1), 60)


class IdPrefix(StrEnum):
    """What an id names."""

    JOB = "job_"
    DATASET = "ds_"
    ATTEMPT = "att_"
    ARTIFACT = "art_"
    KEY = "key_"
    WEBHOOK = "wh_"
    SIGNATURE = "sig_"
    DELIVERY = "msg_"


_BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's, lower case: sorts as the number does


def new_id(prefix: IdPrefix) -> str:
    """A new id: the prefix and a UUIDv7 (RFC 9562, method 3: sub-millisecond time in rand_a) in base32.

    Ids of one process sort by creation to about 0.25 us; 62 bits are random.
    """
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    fraction = (nanoseconds << 12) // 1_000_000
    number = (milliseconds << 80) | (0x7 << 76) | (fraction << 64) | (0b10 << 62) | secrets.randbits(62)
    digits: list[str] = []
    for _ in range(26):
        number, digit = divmod(number, 32)
        digits.append(_BASE32[digit])
    return prefix + "".join(reversed(digits))


def is_id(text: str, prefix: IdPrefix) -> bool:
    """Whether `text` has the form of an id of this kind; says nothing about existence."""
    digits = text.removeprefix(prefix)
    return text.startswith(prefix) and len(digits) == 26 and all(digit in _BASE32 for digit in digits)
