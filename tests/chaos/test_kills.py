"""Any one process killed or hung in the middle of training, on one machine: one attempt at most is lost, no job is."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from .settled import assert_settled, causes, finish
from tests.e2e.stack import Stack, kill, wait_until

pytestmark = pytest.mark.timeout(300)  # a busy machine is no failure
DONE = "completed"


@dataclass(frozen=True)
class Scenario:
    """Who is killed, and how the disturbed job's attempts end."""

    name: str
    victims: Callable[[Stack], list[psutil.Process]]
    causes: list[str]


SCENARIOS = [
    Scenario("api", lambda stack: stack.part("api"), [DONE]),
    Scenario("keeper", lambda stack: stack.part("keeper"), [DONE]),
    Scenario("redis", lambda stack: stack.part("redis"), [DONE]),
    Scenario("celery parent", lambda stack: stack.part("worker"), ["worker_died", DONE]),
    Scenario("celery child", lambda stack: stack.celery_child(), ["worker_died", DONE]),
    Scenario("runner", lambda stack: stack.runners(), ["runner_died", DONE]),
    Scenario("browser", lambda stack: stack.browsers(), ["page_crashed", DONE]),
    Scenario("renderer", lambda stack: stack.renderers(), ["page_crashed", DONE]),
    Scenario("gpu process", lambda stack: stack.gpu_processes(), ["context_lost", DONE]),
]


# Killed once in the quick run by tests/e2e/test_lifecycle.py.
KILLED_THERE = {"renderer", "browser", "runner", "celery child"}


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(s, id=s.name, marks=pytest.mark.full if s.name in KILLED_THERE else ()) for s in SCENARIOS],
)
def test_a_killed_process(stack: Stack, spec: dict[str, Any], weights: bytes, scenario: Scenario):
    """SIGKILL in the middle of training; a second job waits in the queue meanwhile."""
    victims = scenario.victims(stack)  # the warm worker's: later there may be those of the next spare
    assert victims
    jobs = [stack.client.create_job(spec)["id"] for _ in range(2)]
    stack.wait_for_step(stack.client.job(jobs[0]), 700)
    killed_at = datetime.now(UTC)
    for victim in victims:
        kill(victim)
    disturbed = finish(stack, jobs[0])
    assert causes(disturbed) == scenario.causes
    if len(scenario.causes) > 1:
        took = datetime.fromisoformat(disturbed["attempts"][0]["ended_at"]) - killed_at
        print(f"killed {scenario.name}: noticed after {took.total_seconds():.2f} s")  # noqa: T201 - for the record
        assert disturbed["attempts"][-1]["resumed_from_step"] >= 500
    assert_settled(stack, jobs, weights)


def test_posts_while_the_api_dies(stack: Stack, spec: dict[str, Any], tmp_path: Path):
    """Whatever the client had an answer for exists once, however often the API fell in between."""
    short = {**spec, "name": "under fire", "train": {**spec["train"], "steps": 50}}

    def fire() -> None:
        for _ in range(3):
            time.sleep(1.0)
            wait_until(lambda: bool(stack.part("api")), "the API runs")
            for process in stack.part("api"):
                kill(process)

    firing = threading.Thread(target=fire)
    firing.start()
    jobs: list[str] = []
    while len(jobs) < 8:
        jobs.append(stack.client.create_job(short)["id"])
        time.sleep(0.3)
    firing.join()
    assert sorted(job["id"] for job in stack.client.jobs(name="under fire")) == sorted(jobs)
    assert finish(stack, jobs[0])["state"] == "succeeded"
    weights = stack.client.download_weights(jobs[0], tmp_path / "weights").read_bytes()
    assert_settled(stack, jobs, weights)


def test_redis_that_lost_its_file(stack: Stack, spec: dict[str, Any], weights: bytes):
    """Its hints are gone; the jobs are not, since they never were there."""
    (redis,) = stack.part("redis")
    jobs = [stack.client.create_job(spec)["id"] for _ in range(2)]
    stack.wait_for_step(stack.client.job(jobs[0]), 700)
    redis.suspend()  # so that it does not write it again
    shutil.rmtree(stack.data_dir / "redis")
    (stack.data_dir / "redis").mkdir()
    kill(redis)
    wait_until(lambda: [p.pid for p in stack.part("redis")] not in ([], [redis.pid]), "another redis-server")
    assert_settled(stack, jobs, weights)
    assert causes(stack.client.job(jobs[0])) == [DONE]


def test_a_page_that_hangs(stack: Stack, spec: dict[str, Any], weights: bytes):
    """Its processes live, but nothing comes any more: it is given up after the stall time-out."""
    renderers = stack.renderers()
    job = stack.client.create_job(spec)
    stack.wait_for_step(job, 700)
    for renderer in renderers:
        renderer.send_signal(signal.SIGSTOP)
    assert causes(finish(stack, job["id"])) == ["stalled", DONE]
    assert_settled(stack, [job["id"]], weights)


def test_redis_that_hangs_while_jobs_are_posted(stack: Stack, spec: dict[str, Any], weights: bytes):
    """Each POST is answered although Redis answers nothing, and the idle worker finds the jobs by itself."""
    (redis,) = stack.part("redis")
    redis.suspend()
    try:
        jobs = [stack.client.create_job(spec)["id"] for _ in range(3)]
        for job_id in jobs:
            assert causes(finish(stack, job_id)) == [DONE]
        assert redis.status() == psutil.STATUS_STOPPED
    finally:
        redis.resume()
    assert_settled(stack, jobs, weights)


@pytest.mark.parametrize("rounds", [1, pytest.param(6, marks=[pytest.mark.full, pytest.mark.timeout(600)])])
def test_a_storm_of_restarts(stack: Stack, spec: dict[str, Any], weights: bytes, rounds: int):
    """SIGTERM to one part after the other while jobs run and wait: what stops goes back to the queue, uncounted."""
    jobs = [stack.client.create_job(spec)["id"] for _ in range(2 + rounds)]
    for _ in range(rounds):
        for name in ("worker", "api", "keeper", "redis", "worker"):
            wait_until(lambda name=name: bool(stack.part(name)), f"{name} runs")
            (process,) = stack.part(name)
            process.terminate()
            wait_until(lambda name=name, old=process: [old] != stack.part(name), f"{name} ends")
    for job_id in jobs:
        assert set(causes(finish(stack, job_id))) <= {"worker_stopped", DONE}
    assert_settled(stack, jobs, weights)
