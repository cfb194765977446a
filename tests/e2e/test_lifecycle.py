"""What must hold when something is cancelled, killed or missing: the job ends right, and nothing is left over."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import numpy as np
import psutil
import pytest

from texelgrad.client import Job

from .stack import ROOT, Stack, kill, wait_until

pytestmark = pytest.mark.timeout(300)  # a busy machine is no failure


def _train_until(stack: Stack, spec: dict[str, Any], step: int) -> Job:
    return stack.wait_for_step(stack.client.create_job(spec), step)


def test_cancelling_a_running_job_leaves_nothing(stack: Stack, long_job: dict[str, Any]):
    """Within seconds the job is cancelled, and its runner, its browser and its profile are gone."""
    (runner,) = stack.runners()
    (browser,) = stack.browsers()
    (profile,) = stack.profiles()
    family = [runner, browser, *browser.children(recursive=True)]
    job = _train_until(stack, long_job, 500)
    asked_at = datetime.now(UTC)
    stack.client.cancel(job["id"])
    job = stack.client.wait(job["id"], timeout_s=60)
    took = datetime.fromisoformat(job["ended_at"]) - asked_at
    print(f"cancelled after {took.total_seconds():.2f} s")  # noqa: T201 - for the record
    assert (job["state"], job["cause"]) == ("cancelled", "cancelled")
    wait_until(lambda: not any(_is_alive(process) for process in family), "the attempt's processes end")
    wait_until(lambda: profile not in stack.profiles(), "the attempt's profile goes")
    stack.settle()
    assert len(stack.profiles()) == 1  # of the next spare


def test_a_damaged_data_set_is_not_trained_on(stack: Stack):
    """One bit of 20 MB, which come in several windows: the job fails before its first step, and says why; its advice helps."""
    x = np.random.default_rng(5).normal(size=(40_000, 128)).astype(np.float32)
    arrays = {"x": x, "y": (x[:, 0] > 0).astype(np.float32)}
    dataset = stack.client.upload_dataset(arrays)
    spec = {
        "model": {"input": [128], "layers": [{"type": "dense", "units": 1}]},
        "loss": "bce",
        "optimizer": {"type": "sgd", "lr": 0.1},
        "data": {
            "dataset": dataset["id"],
            "normalize": "standard",
            "validation": {"fraction": 0.1, "stratify": True},
        },
        "train": {"steps": 5, "batch_size": 100},
    }
    assert stack.client.train(spec)["state"] == "succeeded"
    with closing(sqlite3.connect(stack.data_dir / "texelgrad.db", timeout=30)) as database, database:
        found = "SELECT c.rowid, c.data FROM artifact_chunk c JOIN dataset_array a USING (artifact_id) WHERE dataset_id = ? AND a.name = 'x' AND seq = 9"
        (rowid, data) = database.execute(found, (dataset["id"],)).fetchone()
        damaged = bytes([data[0] ^ 1]) + data[1:]
        database.execute("UPDATE artifact_chunk SET data = ? WHERE rowid = ?", (damaged, rowid))
    job = stack.client.wait(stack.client.create_job(spec)["id"])
    assert (job["state"], job["cause"]) == ("failed", "data_damaged")
    assert not stack.client.metrics(job["id"])
    assert "upload the data set anew" in stack.client.why(job["id"])["summary"]
    assert stack.client.upload_dataset(arrays)["id"] == dataset["id"]
    assert stack.client.wait(stack.client.retry(job["id"])["id"])["state"] == "succeeded"


def test_cancelling_a_queued_job(stack: Stack, long_job: dict[str, Any], seed_demo: dict[str, Any]):
    """A job that nobody has taken yet is cancelled at once and never starts."""
    first = _train_until(stack, {**long_job, "train": {"steps": 12_000}}, 100)
    queued = stack.client.create_job(seed_demo)
    assert stack.client.cancel(queued["id"])["state"] == "cancelled"
    assert stack.client.wait(first["id"], timeout_s=180)["state"] == "succeeded"
    assert stack.client.job(queued["id"])["attempts"] == []


@pytest.mark.parametrize(
    ("victim", "cause"),
    [("renderer", "page_crashed"), ("browser", "page_crashed"), ("runner", "runner_died")],
)
def test_a_killed_process_costs_one_attempt(stack: Stack, long_job: dict[str, Any], victim: str, cause: str):
    """The next attempt goes on from the last checkpoint, the curve has each step once, nothing is left over."""
    finders = {"renderer": stack.renderers, "browser": stack.browsers, "runner": stack.runners}
    victims = finders[victim]()  # of renderers Chromium keeps a spare one
    (profile,) = stack.profiles()
    job = _train_until(stack, {**long_job, "train": {"steps": 12_000, "seed": 3}}, 2_500)
    for process in victims:
        kill(process)
    job = stack.client.wait(job["id"], timeout_s=180)
    assert job["state"] == "succeeded"
    lost, last = job["attempts"]
    assert (lost["state"], lost["cause"]) == ("lost", cause)
    if victim == "browser":
        assert lost["message"] == "Chromium: it was killed by signal 9 (SIGKILL)"
    (told,) = (
        each["text"] for each in stack.client.why(job["id"])["reasons"] if each["code"] == "attempt_lost"
    )
    assert "\n" not in told, "what Chromium logged is no cause"
    assert last["resumed_from_step"] >= 2_000
    lines = [
        (line["attempt"], line["message"])
        for line in stack.client.logs(job["id"])
        if not line["message"].startswith("Chromium: ")  # what it logged last
    ]
    wanted = [
        (1, "compiled in "),
        (1, f"lost: {cause}"),
        (2, "compiled in "),
        (2, f"goes on from step {last['resumed_from_step']}, bit for bit"),
        (2, "succeeded: completed"),
    ]
    assert len(lines) == len(wanted), lines
    for (attempt, message), (number, begins) in zip(lines, wanted, strict=True):
        assert (attempt, message[: len(begins)]) == (number, begins)
    steps = stack.client.metrics(job["id"], max_points=100_000)["loss"].steps
    assert steps.tolist() == list(range(1, 12_001))
    stack.settle()
    assert profile not in stack.profiles()
    assert len(stack.profiles()) == 1


def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(stack: Stack, long_job: dict[str, Any]):
    """Killed half-way and resumed on the same device, training ends with the same weights, bit for bit; one report says all."""
    spec = {**long_job, "train": {"steps": 8_000, "batch_size": 32, "seed": 9}, "diagnostics": "basic"}
    whole = stack.client.train(spec)
    stack.settle()
    (browser,) = stack.browsers()
    broken = _train_until(stack, spec, 1_500)
    kill(browser)
    broken = stack.client.wait(broken["id"], timeout_s=180)
    attempts = [(attempt["state"], attempt["measured"]) for attempt in broken["attempts"]]
    assert attempts == [("lost", True), ("succeeded", False)]
    left, right = stack.client.weights(whole["id"]), stack.client.weights(broken["id"])
    assert {name: value.tobytes() for name, value in left.items()} == {
        name: value.tobytes() for name, value in right.items()
    }


def test_a_damaged_checkpoint_does_not_lose_the_run(stack: Stack, long_job: dict[str, Any]):
    """A job that resumes finds other bytes than were stored: it starts anew, says why, and ends with the right weights."""
    job = stack.client.cancel(_train_until(stack, long_job, 1_500)["id"])
    job = stack.client.wait(job["id"], timeout_s=60)
    (checkpoint,) = stack.client.checkpoints(job["id"])
    with closing(sqlite3.connect(stack.data_dir / "texelgrad.db")) as db, db:
        db.execute(
            "UPDATE artifact_chunk SET data = zeroblob(length(data)) WHERE artifact_id = ?",
            [checkpoint["id"]],
        )
    resumed = stack.client.wait(stack.client.resume(job["id"])["id"], timeout_s=180)
    assert resumed["state"] == "succeeded"
    assert [attempt["cause"] for attempt in resumed["attempts"]] == ["checkpoint_damaged", "completed"]
    assert "SHA-256" in resumed["attempts"][0]["message"]
    assert stack.client.metrics(resumed["id"], max_points=100_000)["loss"].steps.tolist() == list(
        range(1, 20_001)
    )
    assert stack.client.checkpoints(job["id"]) == []
    whole = stack.client.train(long_job)
    left, right = stack.client.weights(whole["id"]), stack.client.weights(resumed["id"])
    assert {name: value.tobytes() for name, value in left.items()} == {
        name: value.tobytes() for name, value in right.items()
    }


def test_a_killed_celery_child_costs_one_attempt(stack: Stack, long_job: dict[str, Any]):
    """Its runner and browser die with it, its attempt is let go at once, its successor finishes the job and sweeps."""
    (runner,) = stack.runners()
    (browser,) = stack.browsers()
    (profile,) = stack.profiles()
    family = [runner, browser, *browser.children(recursive=True)]
    job = _train_until(stack, {**long_job, "train": {"steps": 12_000, "seed": 3}}, 1_500)
    (child,) = stack.celery_child()
    kill(child)
    wait_until(lambda: not any(_is_alive(process) for process in family), "its family ends")
    job = stack.client.wait(job["id"], timeout_s=180)
    assert job["state"] == "succeeded"
    assert [attempt["cause"] for attempt in job["attempts"]] == ["worker_died", "completed"]
    stack.settle()
    assert profile not in stack.profiles()
    assert len(stack.profiles()) == 1


def test_a_killed_serve_takes_everything_with_it():
    """After SIGKILL of `texelgrad serve` no process of it is left; the next start sweeps its profile."""
    with Stack() as stack:
        profiles = stack.profiles()
        assert stack.left_behind()
        stack.process.kill()
        stack.wait_for_end()
        wait_until(lambda: not stack.left_behind(), "its processes end")
        assert stack.profiles() == profiles  # nobody was left to remove it
        stack.start()
        assert profiles.isdisjoint(stack.profiles())


def test_stopping_leaves_nothing_and_queues_the_job_again(long_job: dict[str, Any]):
    """SIGTERM in the middle of a job: it goes back to the queue, uncounted, and the next start finishes it."""
    with Stack() as stack:
        job = _train_until(stack, {**long_job, "train": {"steps": 60_000}}, 1_500)
        stack.process.terminate()
        assert stack.wait_for_end() == 0
        assert stack.left_behind() == []
        assert stack.profiles() == set()
        stack.start()
        job = stack.client.job(job["id"])
        assert job["attempts"][0]["cause"] == "worker_stopped"
        job = stack.client.wait(job["id"], timeout_s=180)
        assert job["state"] == "succeeded"
        assert job["attempts"][-1]["resumed_from_step"] >= 1_000


def test_a_worker_that_cannot_train_takes_no_job(seed_demo: dict[str, Any]):
    """Its row says why and what to do; the job stays queued and is not blamed."""
    fault = "no_browser: No Chromium that runs: /no/such/chromium: no such file"
    with Stack({"chromium": "/no/such/chromium"}, warm=False) as stack:
        job = stack.client.create_job(seed_demo)
        wait_until(lambda: stack.worker().get("state") == "broken", "the worker gives up")
        assert stack.worker()["fault"].startswith(fault)
        job = stack.client.job(job["id"])
        assert (job["state"], job["attempts"]) == ("queued", [])
        assert stack.profiles() == set()


def test_without_redis_serve_says_what_to_install(tmp_path: Any):
    """No server binary: it stops with the command that installs it."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "setpriv").symlink_to("/usr/bin/setpriv")
    done = subprocess.run(
        [sys.executable, "-m", "texelgrad.cli", "serve", "--port=0", f"--data-dir={tmp_path}"],
        env={**os.environ, "PATH": str(tmp_path / "bin")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1
    assert "apt-get install redis-server" in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
