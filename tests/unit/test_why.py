"""Explanations: every cause has words, and each state of queue and workers its own reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from texelgrad.domain import Cause
from texelgrad.why import CAUSES, WARNINGS, AttemptFacts, JobFacts, WorkerFacts, explain, waiting_for

QUEUED = JobFacts(
    state="queued",
    cause=None,
    message=None,
    queue="gpu",
    needs_hardware=False,
    step=0,
    total_steps=10,
    wait_s=0,
    deadline_s=None,
    cancel_requested=False,
    ahead=0,
    attempts=[],
)
IDLE = WorkerFacts("w1", "idle", draining=False, software=True, fault=None)
LOST = AttemptFacts(1, "lost", "lease_expired", None, "w0", None)


def codes(job: JobFacts, *workers: WorkerFacts) -> list[str]:
    """The reasons' codes, in their order."""
    return [reason["code"] for reason in explain(job, workers)["reasons"]]


def test_every_cause_has_words():
    """None is left out, each is the rest of a sentence."""
    assert set(CAUSES) == set(Cause)
    for meaning, advice in CAUSES.values():
        assert meaning[0].islower() or meaning.startswith("texelgrad"), meaning
        assert advice is None or advice.endswith((".", "it")), advice


@pytest.mark.parametrize(
    ("job", "workers", "expected"),
    [
        (QUEUED, [], "no_workers"),
        (QUEUED, [replace(IDLE, state="stopped")], "no_workers"),
        (QUEUED, [replace(IDLE, state="broken", fault="x")], "workers_broken"),
        (QUEUED, [replace(IDLE, draining=True)], "workers_draining"),
        (QUEUED, [replace(IDLE, state="draining"), replace(IDLE, state="broken")], "workers_draining"),
        (replace(QUEUED, needs_hardware=True), [IDLE], "needs_hardware"),
        (QUEUED, [replace(IDLE, state="busy"), IDLE], "soon"),
        (QUEUED, [replace(IDLE, state="busy"), replace(IDLE, draining=True)], "workers_busy"),
        (QUEUED, [replace(IDLE, state="starting")], "workers_starting"),
        (replace(QUEUED, wait_s=4.0, attempts=[LOST]), [IDLE], "backing_off"),
        (replace(QUEUED, state="running", attempts=[LOST]), [], "running"),
        (replace(QUEUED, state="running", cancel_requested=True, attempts=[LOST]), [], "cancelling"),
        (replace(QUEUED, state="aborted", cause="deadline"), [], "deadline"),
        (replace(QUEUED, state="succeeded", cause="completed"), [], "completed"),
        (replace(QUEUED, state="failed", cause="not one of ours"), [], "not one of ours"),
    ],
)
def test_the_first_reason(job: JobFacts, workers: list[WorkerFacts], expected: str):
    """It is the summary, and a whole sentence."""
    answer = explain(job, workers)
    assert answer["reasons"][0]["code"] == expected
    assert answer["summary"] == answer["reasons"][0]["text"]
    assert answer["summary"].endswith("."), answer["summary"]


@pytest.mark.parametrize("leaving", [{"draining": True}, {"state": "draining"}, {"state": "broken"}])
def test_a_gpu_that_takes_no_more_jobs_is_none(leaving: dict[str, Any]):
    """Beside it, a worker that renders in software may claim, but not a job that needs a GPU."""
    workers = [replace(IDLE, software=False, **leaving), replace(IDLE, id="w2", state="busy")]
    job = replace(QUEUED, needs_hardware=True)
    (reason,) = explain(job, workers)["reasons"]
    assert waiting_for("gpu", True, workers) == reason
    assert reason["code"] == "needs_hardware"
    assert waiting_for("gpu", False, workers) is None


@pytest.mark.parametrize(
    ("number", "sentences"),
    [
        (1, ["1 worker of queue gpu is busy.", "1 older job of queue gpu comes first."]),
        (2, ["2 workers of queue gpu are busy.", "2 older jobs of queue gpu come first."]),
    ],
)
def test_numbers_in_sentences(number: int, sentences: list[str]):
    """One is, several are."""
    workers = [replace(IDLE, id=f"w{index}", state="busy") for index in range(number)]
    reasons = explain(replace(QUEUED, ahead=number), workers)["reasons"]
    assert [reason["text"] for reason in reasons] == sentences


@pytest.mark.parametrize(("number", "begins"), [(1, "1 try was made"), (3, "3 tries were made")])
def test_numbers_of_tries(number: int, begins: str):
    """Where only one was allowed, too."""
    job = replace(QUEUED, state="failed", cause="lease_expired", attempts=[LOST] * number)
    assert explain(job, [])["reasons"][1]["text"].startswith(begins)


def test_tries_that_are_used_up():
    """Each lost try is told once, and that no more are allowed."""
    tries = [replace(LOST, number=number) for number in (1, 2, 3)]
    job = replace(QUEUED, state="failed", cause="lease_expired", attempts=tries)
    assert codes(job) == ["lease_expired", "attempts_used_up", "attempt_lost", "attempt_lost"]


def test_workers_that_could_not():
    """An environment fault is nobody's try."""
    job = replace(QUEUED, state="failed", cause="no_browser", attempts=[replace(LOST, cause="no_browser")])
    assert codes(job) == ["no_browser", "environment"]


def test_place_and_deadline_of_a_queued_job():
    """Both are told after what the workers do."""
    job = replace(QUEUED, ahead=3, deadline_s=60.0)
    assert codes(job, IDLE) == ["soon", "behind_others", "deadline"]
    assert explain(job, [IDLE])["queue_position"] == 4


@pytest.mark.parametrize("code", WARNINGS)
def test_every_warning_has_advice_in_whole_sentences(code: str):
    """After what is wrong."""
    done = replace(
        QUEUED, state="succeeded", cause="completed", warnings=[{"code": code, "message": "all is lost"}]
    )
    assert explain(done, [])["summary"] == f"It succeeded, but all is lost. {WARNINGS[code]}"
    assert WARNINGS[code][0].isupper()
    assert WARNINGS[code].endswith(".")


def test_what_a_run_warns_of_comes_first():
    """It succeeded, and yet its weights are of no use: that is what whoever asks must know."""
    warning = {"code": "weights_not_finite", "message": "3 of 9 weights are NaN or infinite"}
    done = replace(QUEUED, state="succeeded", cause="completed", warnings=[warning])
    answer = explain(done, [])
    assert [reason["code"] for reason in answer["reasons"]] == ["weights_not_finite", "completed"]
    assert answer["summary"].startswith("It succeeded, but 3 of 9 weights are NaN or infinite.")
    assert "numerics.on_nonfinite" in answer["summary"]
