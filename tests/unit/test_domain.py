"""Every transition of jobs and attempts, causes and their policies, and ids."""

from __future__ import annotations

import time
from itertools import product

import pytest

from texelgrad.domain import (
    FINAL_JOB_STATES,
    LIVE_ATTEMPT_STATES,
    POLICIES,
    AttemptState,
    Cause,
    IdPrefix,
    JobState,
    attempt_may,
    environment_delay_s,
    is_id,
    job_may,
    new_id,
)

# Written out once more, from the design's words rather than from the code's tables.
LEGAL_JOB_MOVES = {
    ("queued", "running"),
    ("queued", "cancelled"),
    ("queued", "aborted"),
    ("running", "queued"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "cancelled"),
}
LEGAL_ATTEMPT_MOVES = {
    ("claimed", "starting"),
    ("starting", "training"),
    ("training", "saving"),
    ("saving", "succeeded"),
    *product(("claimed", "starting", "training", "saving"), ("failed", "cancelled", "lost")),
}
PAGE_CODES = {
    "no_webgl2",
    "no_float_targets",
    "software_refused",
    "context_lost",
    "gl_error",
    "shader_error",
    "internal",
    "spec_invalid",
    "data_invalid",
    "too_large",
    "non_finite_loss",
    "aborted",
}


@pytest.mark.parametrize(("old", "new"), list(product(JobState, JobState)))
def test_job_moves(old: JobState, new: JobState):
    """A job may go exactly where the design says."""
    assert job_may(old, new) == ((old.value, new.value) in LEGAL_JOB_MOVES)


@pytest.mark.parametrize(("old", "new"), list(product(AttemptState, AttemptState)))
def test_attempt_moves(old: AttemptState, new: AttemptState):
    """An attempt goes forward one state at a time, and may end badly from each."""
    assert attempt_may(old, new) == ((old.value, new.value) in LEGAL_ATTEMPT_MOVES)


def test_final_and_live_states():
    """Four states of each are final."""
    assert {"succeeded", "failed", "cancelled", "aborted"} == FINAL_JOB_STATES
    assert {"claimed", "starting", "training", "saving"} == LIVE_ATTEMPT_STATES


def test_every_bad_cause_has_a_policy():
    """Causes that decide by themselves have none; all others do, the page's codes among them."""
    assert set(Cause) - set(POLICIES) == {Cause.COMPLETED, Cause.CANCELLED, Cause.DEADLINE}
    assert {str(cause) for cause in POLICIES} >= PAGE_CODES


@pytest.mark.parametrize(
    "cause", ["no_webgl2", "no_float_targets", "software_refused", "no_browser", "no_renderer"]
)
def test_a_bad_environment_is_not_the_jobs_fault(cause: str):
    """Browsers that can't train don't use up a job's tries."""
    assert POLICIES[Cause(cause)] == "environment"


def test_environment_delay_doubles_up_to_a_minute():
    """1, 2, 4, ... 60 seconds."""
    assert [environment_delay_s(faults) for faults in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_ids_sort_by_creation_and_differ():
    """Later ids are greater, also within a millisecond, and none comes twice."""
    ids: list[str] = []
    for _ in range(200):
        ids.append(new_id(IdPrefix.JOB))
        started = time.time_ns()
        while time.time_ns() - started < 1000:  # the resolution of the id's clock is 244 ns
            pass
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_an_id_is_a_uuid_version_7_in_base32():
    """Its 128 bits hold the time in milliseconds, version and variant."""
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    before = time.time_ns() // 1_000_000
    text = new_id(IdPrefix.DATASET)
    number = 0
    for digit in text.removeprefix("ds_"):
        number = number * 32 + digits.index(digit)
    assert 0 <= (number >> 80) - before <= 1000
    assert (number >> 76) & 0xF == 7
    assert (number >> 62) & 0b11 == 0b10
    assert number < 1 << 128


@pytest.mark.parametrize(
    "text",
    [
        "",
        "job_",
        "job_" + "0" * 25,
        "job_" + "0" * 27,
        "job_" + "u" * 26,
        "ds_" + "0" * 26,
        "0" * 26,
        "job_" + "A" * 26,
    ],
)
def test_what_is_no_job_id(text: str):
    """Other prefixes, lengths and letters are refused."""
    assert not is_id(text, IdPrefix.JOB)


def test_a_new_id_is_an_id_of_its_kind_only():
    """The prefix says the kind."""
    for made, asked in product(IdPrefix, IdPrefix):
        assert is_id(new_id(made), asked) == (made == asked)
