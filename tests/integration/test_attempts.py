"""Claims, leases, fencing, and what the end of an attempt means for its job, on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from texelgrad import artifacts, repository
from texelgrad.db import Database, now_us
from texelgrad.domain import AttemptState, Cause, JobState
from texelgrad.errors import Conflict, Fenced, IllegalTransition, NotFound
from texelgrad.models import Artifact, ArtifactChunk, Attempt, Event, Job, LogLine, MetricChunk

from .steps import OWNER, add_points, advance, claim, finish, queue_job, succeed, try_claim, write_artifact


def read_job(db: Database, job_id: str) -> Job:
    """The job as it stands."""
    with db.read() as session:
        return repository.get_job(session, OWNER, job_id)


def expire(db: Database, attempt_id: str) -> None:
    """Let the attempt's lease have run out."""
    with db.write() as session:
        session.execute(
            update(Attempt).where(Attempt.id == attempt_id).values(lease_until=now_us(session) - 1)
        )


def reap(db: Database) -> list[str]:
    """One round of the reaper."""
    with db.write() as session:
        return repository.reap_expired(session)


def test_a_claim_carries_the_job(db: Database):
    """The worker gets the spec as stored, and the job runs."""
    job_id = queue_job(db)
    claimed = claim(db)
    assert claimed.job_id == job_id
    assert claimed.number == 1
    assert claimed.resume is None
    assert claimed.spec["model"]["layers"][0]["name"] == "dense_1"
    assert read_job(db, job_id).state == JobState.RUNNING
    assert try_claim(db) is None


def test_the_oldest_job_comes_first(db: Database):
    """In the order of creation, and only from the queue asked for."""
    ids = [queue_job(db) for _ in range(3)]
    other = queue_job(db, queue="cpu")
    assert [claim(db).job_id for _ in range(3)] == ids
    assert try_claim(db) is None
    claimed = try_claim(db, queue="cpu")
    assert claimed is not None
    assert claimed.job_id == other


def test_a_job_that_needs_hardware_passes_software_workers_by(db: Database):
    """A worker with a software renderer leaves it in the queue; one with a GPU takes it."""
    job_id = queue_job(db, needs_hardware=True)
    with db.write() as session:
        for name, software in (("soft", True), ("hard", False)):
            repository.touch_worker(session, name, host="h", pid=1, queue="gpu", software=software)
    assert try_claim(db, "soft") is None
    claimed = try_claim(db, "hard")
    assert claimed is not None
    assert claimed.job_id == job_id


def test_two_claimers_never_get_the_same_job(db: Database):
    """Eight threads claim twenty jobs: each job once, none left."""
    ids = {queue_job(db) for _ in range(20)}
    claimed: list[str] = []
    failures: list[BaseException] = []
    start = threading.Barrier(8)

    def work(worker: str) -> None:
        try:
            start.wait()
            empty = 0
            # On PostgreSQL a claimer may find the last jobs locked by others, and looks again.
            while empty < 3:
                found = try_claim(db, worker)
                empty = 0 if found else empty + 1
                if found:
                    claimed.append(found.job_id)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(f"w{index}",)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(claimed) == sorted(ids)


def test_success(db: Database):
    """Weights become readable, attempt and job end together, and the events tell it in order."""
    job_id = queue_job(db)
    claimed = claim(db)
    advance(db, claimed, "starting", "training", "saving")
    artifact_id = write_artifact(db, claimed, "weights", b"w" * 100)
    with db.read() as session, pytest.raises(NotFound):
        artifacts.open_range(session, artifact_id)
    assert finish(db, claimed, "succeeded", "completed") == JobState.SUCCEEDED
    job = read_job(db, job_id)
    assert (job.state, job.cause) == ("succeeded", "completed")
    assert job.ended_at is not None
    with db.read() as session:
        assert artifacts.read_all(session, artifact_id) == b"w" * 100
        events = repository.events_after(session, job_id, 0)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    told = [(event.type, event.data["state"]) for event in events]
    assert told == [
        ("state", "queued"),
        ("state", "running"),
        *[("attempt", state) for state in ("claimed", "starting", "training", "saving", "succeeded")],
        ("state", "succeeded"),
    ]


def test_no_success_without_weights(db: Database):
    """Weights that are missing or incomplete end nothing."""
    queue_job(db)
    claimed = claim(db)
    advance(db, claimed, "starting", "training", "saving")
    artifacts.open_writer(db, OWNER, claimed.attempt_id, claimed.token, "weights").append(b"half")
    with pytest.raises(Conflict, match="no complete weights"):
        finish(db, claimed, "succeeded", "completed")
    with db.read() as session:
        assert session.get_one(Attempt, claimed.attempt_id).state == "saving"


def test_states_can_not_be_skipped(db: Database):
    """Success needs every state before it, and an end goes through finish_attempt only."""
    queue_job(db)
    claimed = claim(db)
    with pytest.raises(IllegalTransition):
        advance(db, claimed, "training")
    with pytest.raises(IllegalTransition):
        advance(db, claimed, "lost")
    write_artifact(db, claimed, "weights", b"w")
    with pytest.raises(IllegalTransition):
        finish(db, claimed, "succeeded", "completed")


def test_retries_until_the_tries_are_used_up(db: Database):
    """A lost attempt requeues the job; the last one fails it with its cause."""
    job_id = queue_job(db, max_attempts=2)
    assert finish(db, claim(db), "lost", "runner_died", "killed") == JobState.QUEUED
    job = read_job(db, job_id)
    assert (job.cause, job.message, job.lost_attempts, job.ended_at) == ("runner_died", "killed", 1, None)
    second = claim(db)
    assert second.number == 2
    assert finish(db, second, "failed", "context_lost") == JobState.FAILED
    job = read_job(db, job_id)
    assert (job.state, job.cause) == ("failed", "context_lost")
    assert job.ended_at is not None


def test_the_jobs_own_fault_is_not_tried_again(db: Database):
    """What would end the same way fails at once, with what the page reported."""
    job_id = queue_job(db)
    claimed = claim(db)
    with db.write() as session:
        state = repository.finish_attempt(
            session,
            claimed.attempt_id,
            claimed.token,
            AttemptState.FAILED,
            Cause.NON_FINITE_LOSS,
            "diverged",
            {"step": 17, "loss": float("nan")},
        )
    assert state == JobState.FAILED
    assert read_job(db, job_id).failure == {"step": 17, "loss": "NaN"}


def test_a_bad_environment_does_not_count(db: Database):
    """The job waits a little, keeps its tries, and fails only after ten workers could not start it."""
    job_id = queue_job(db, max_attempts=1)
    for fault in range(1, 11):
        with db.write() as session:
            session.execute(update(Job).values(eligible_at=0))
        claimed = claim(db)
        state = finish(db, claimed, "failed", "no_browser")
        assert state == (JobState.QUEUED if fault < 10 else JobState.FAILED)
        assert read_job(db, job_id).lost_attempts == 0
        assert try_claim(db) is None
    assert read_job(db, job_id).cause == "no_browser"


def test_cancel_before_a_claim(db: Database):
    """A queued job is cancelled at once, and nobody claims it."""
    job_id = queue_job(db)
    with db.write() as session:
        assert repository.request_cancel(session, OWNER, job_id).state == "cancelled"
    assert try_claim(db) is None


def test_cancel_while_running(db: Database):
    """The worker is asked; asking twice is one event; the end is cancelled also where the attempt is lost."""
    job_id = queue_job(db)
    claimed = claim(db)
    for _ in range(2):
        with db.write() as session:
            assert repository.request_cancel(session, OWNER, job_id).state == "running"
    with db.read() as session:
        assert repository.cancel_requested(session, claimed.attempt_id)
        types = [event.type for event in repository.events_after(session, job_id, 0)]
    assert types.count("cancel_requested") == 1
    assert finish(db, claimed, "lost", "runner_died") == JobState.CANCELLED
    assert read_job(db, job_id).cause == "cancelled"


def test_success_that_commits_first_wins_over_cancel(db: Database):
    """A cancellation that comes too late changes nothing and says so."""
    job_id = queue_job(db)
    succeed(db, claim(db))
    with db.write() as session, pytest.raises(Conflict):
        repository.request_cancel(session, OWNER, job_id)
    assert read_job(db, job_id).state == "succeeded"


def test_nobody_cancels_another_owners_job(db: Database):
    """It can't even be told from one that does not exist."""
    job_id = queue_job(db)
    with db.write() as session, pytest.raises(NotFound):
        repository.request_cancel(session, "somebody", job_id)


def test_the_reaper_returns_what_a_silent_worker_held(db: Database):
    """Only expired leases; the job is queued again and the next worker claims it."""
    job_id = queue_job(db)
    claimed = claim(db)
    assert reap(db) == []
    expire(db, claimed.attempt_id)
    assert reap(db) == [job_id]
    assert read_job(db, job_id).cause == "lease_expired"
    again = claim(db, "w2")
    assert (again.job_id, again.number) == (job_id, 2)


def test_renewing_keeps_the_reaper_away(db: Database):
    """A lease counts from its renewal; a reaped attempt can't renew."""
    queue_job(db)
    claimed = claim(db)
    expire(db, claimed.attempt_id)
    with db.write() as session:
        assert repository.renew_lease(session, claimed.attempt_id, claimed.token, 15)
    assert reap(db) == []
    expire(db, claimed.attempt_id)
    reap(db)
    with db.write() as session:
        assert not repository.renew_lease(session, claimed.attempt_id, claimed.token, 15)


def test_a_stale_token_writes_nothing(db: Database):
    """Every write of a reaped attempt is refused, and the database stays as it was."""
    queue_job(db)
    claimed = claim(db)
    advance(db, claimed, "starting", "training")
    writer = artifacts.open_writer(db, OWNER, claimed.attempt_id, claimed.token, "weights")
    expire(db, claimed.attempt_id)
    reap(db)

    def counts() -> list[Any]:
        with db.read() as session:
            return [
                session.scalar(select(func.count()).select_from(table))
                for table in (MetricChunk, LogLine, Event, Artifact, ArtifactChunk)
            ] + [session.get_one(Attempt, claimed.attempt_id).record]

    before = counts()
    attempt = (claimed.attempt_id, claimed.token)
    writes: list[Callable[[Session], object]] = [
        lambda session: repository.append_metrics(session, *attempt, ["loss"], 1, bytes(4), bytes(8)),
        lambda session: repository.record_progress(session, *attempt, 1, 2, {}),
        lambda session: repository.save_record(session, *attempt, {"backend": "webgl2"}),
        lambda session: repository.save_diagnostics(session, *attempt, {}),
        lambda session: repository.append_log(session, *attempt, "info", "late"),
        lambda session: repository.advance_attempt(session, *attempt, AttemptState.SAVING),
        lambda session: repository.finish_attempt(session, *attempt, AttemptState.FAILED, Cause.INTERNAL),
    ]
    for write in writes:
        with pytest.raises(Fenced), db.write() as session:
            write(session)
    with pytest.raises(Fenced):
        writer.append(bytes(1 << 20))
    with pytest.raises(Fenced):
        writer.commit()
    with pytest.raises(Fenced):
        artifacts.open_writer(db, OWNER, *attempt, "checkpoint", 5)
    assert counts() == before


def test_another_token_is_fenced_while_the_attempt_lives(db: Database):
    """Knowing an attempt's id is not enough."""
    queue_job(db)
    claimed = claim(db)
    with pytest.raises(Fenced), db.write() as session:
        repository.append_log(session, claimed.attempt_id, "guess", "info", "hello")


def test_resume_from_the_last_checkpoint(db: Database):
    """The next attempt continues the furthest complete checkpoint, and the curve has no doubled point."""
    job_id = queue_job(db)
    first = claim(db)
    advance(db, first, "starting", "training")
    write_artifact(db, first, "checkpoint", b"at 2", step=2)
    kept = write_artifact(db, first, "checkpoint", b"at 4", step=4)
    artifacts.open_writer(db, OWNER, first.attempt_id, first.token, "checkpoint", 6).append(b"half")
    add_points(db, first, [(step, 1 / step) for step in range(1, 6)])
    finish(db, first, "lost", "runner_died")

    second = claim(db)
    assert second.resume is not None
    assert (second.resume.artifact_id, second.resume.step) == (kept, 4)
    advance(db, second, "starting", "training")
    add_points(db, second, [(5, 50.0), (6, 60.0)])
    with db.read() as session:
        curve = repository.curves(session, job_id)["loss"]
    assert curve.steps.tolist() == [1, 2, 3, 4, 5, 6]
    assert curve.values.tolist()[3:] == [0.25, 50.0, 60.0]
    assert read_job(db, job_id).step == 4

    # A third attempt continues the first one's checkpoint, since the second made none: its points are gone.
    finish(db, second, "lost", "runner_died")
    third = claim(db)
    assert third.resume == second.resume
    with db.read() as session:
        assert repository.curves(session, job_id)["loss"].steps.tolist() == [1, 2, 3, 4]


def test_a_resume_knows_whether_its_job_has_a_report(db: Database):
    """Of an earlier attempt at the same job; the report of the job that it resumes is that one's."""
    old = queue_job(db, max_attempts=2)
    first = claim(db)
    advance(db, first, "starting", "training")
    checkpoint = write_artifact(db, first, "checkpoint", b"at 4", step=4)
    with db.write() as session:
        repository.save_diagnostics(session, first.attempt_id, first.token, {"level": "basic"})
    finish(db, first, "lost", "runner_died")
    second = claim(db)
    assert second.resume is not None
    assert second.resume.measured
    finish(db, second, "failed", "internal")
    queue_job(db, parent_id=old, resume_artifact_id=checkpoint)
    other = claim(db)
    assert other.resume is not None
    assert (other.resume.artifact_id, other.resume.measured) == (checkpoint, False)


def test_a_start_from_scratch_shows_no_old_points(db: Database):
    """Without a checkpoint the new attempt's curve begins anew."""
    job_id = queue_job(db)
    first = claim(db)
    add_points(db, first, [(1, 0.5)])
    finish(db, first, "lost", "runner_died")
    claim(db)
    with db.read() as session:
        assert repository.curves(session, job_id) == {}


def test_overdue_jobs_are_aborted(db: Database):
    """A deadline counts only while the job is queued."""
    with db.write() as session:
        past = now_us(session) - 1
    overdue = queue_job(db, deadline_at=past)
    waiting = queue_job(db, deadline_at=past + 3_600_000_000)
    assert claim(db).job_id == waiting
    with db.write() as session:
        assert repository.abort_overdue(session) == [overdue]
    job = read_job(db, overdue)
    assert (job.state, job.cause) == ("aborted", "deadline")


def test_queued_counts_only_what_can_be_claimed(db: Database):
    """By queue; jobs that wait after an environment fault don't count."""
    queue_job(db)
    queue_job(db, queue="cpu")
    queue_job(db, queue="cpu")
    with db.read() as session:
        assert repository.queued_counts(session) == {"gpu": 1, "cpu": 2}
    finish(db, claim(db), "failed", "no_renderer")
    with db.read() as session:
        assert repository.queued_counts(session) == {"cpu": 2}
