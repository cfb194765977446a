"""Workers that end without a word: their attempts are let go at once, by a successor or the keeper; and draining."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from texelgrad import repository
from texelgrad.config import Settings
from texelgrad.db import Database, now_us
from texelgrad.errors import Fenced
from texelgrad.hints import Publisher
from texelgrad.keeper import Keeper
from texelgrad.models import Attempt, Job, Worker
from texelgrad.presence import Presence, vacated
from texelgrad.worker_commands import workers

from .conftest import PostgresDatabases
from .steps import advance, claim, queue_job, try_claim

ROOT = Path(__file__).parents[2]
HOLDER = "import sys, time; from texelgrad.presence import Presence; Presence(sys.argv[1]); print(flush=True); time.sleep(600)"


@pytest.fixture(autouse=True)
def _places(  # pyright: ignore[reportUnusedFunction]
    postgres: PostgresDatabases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Places of this test's own; not those of the server, which outlives it."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the place of worker w1."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, "w1"], stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _touch(db: Database, worker: str = "w1", host: str = "") -> bool:
    with db.write() as session:
        return repository.touch_worker(
            session, worker, host=host or socket.gethostname(), pid=1, queue="gpu", state="busy"
        )


@pytest.fixture
def keeper(db: Database, settings: Settings) -> Iterator[Keeper]:
    """A keeper whose broker is away."""
    publisher = Publisher(settings.broker)
    yield Keeper(db, publisher, settings)
    publisher.close()


def _state(db: Database, job_id: str) -> str:
    with db.read() as session:
        return session.get_one(Job, job_id).state


def test_a_place_is_held_while_its_process_lives(holder: subprocess.Popen[bytes]):
    """SIGKILL and SIGSTOP tell apart: who is stopped still holds it."""
    with vacated("w1") as gone:
        assert not gone
    holder.send_signal(signal.SIGSTOP)
    with vacated("w1") as gone:
        assert not gone
    holder.kill()
    holder.wait()
    with vacated("w1") as gone:
        assert gone
    with vacated("w1") as gone:
        assert not gone  # nothing is known of it any more


def test_a_place_that_was_left_leaves_no_file():
    place = Presence("host/../odd name")
    assert len(list(Path(tempfile.gettempdir()).rglob("*odd*"))) == 1
    place.leave()
    assert not list(Path(tempfile.gettempdir()).rglob("*odd*"))


def test_the_keeper_releases_what_a_dead_worker_held(
    db: Database, keeper: Keeper, holder: subprocess.Popen[bytes]
):
    """Only once its process is gone; then at once, with the cause, fenced, and its row says so."""
    job_id = queue_job(db)
    claimed = claim(db)
    advance(db, claimed, "starting")
    _touch(db)
    assert keeper.round()
    assert _state(db, job_id) == "running"
    holder.kill()
    holder.wait()
    assert keeper.round()
    assert _state(db, job_id) == "queued"
    with db.read() as session:
        attempt = session.get_one(Attempt, claimed.attempt_id)
        assert (attempt.state, attempt.cause) == ("lost", "worker_died")
        worker = session.get_one(Worker, "w1")
        assert (worker.state, worker.attempt_id) == ("stopped", None)
    with pytest.raises(Fenced):
        advance(db, claimed, "training")


def test_workers_of_other_machines_are_left_to_their_leases(db: Database, keeper: Keeper):
    """Nothing of them can be seen here."""
    job_id = queue_job(db)
    claim(db, "far")
    _touch(db, "far", host="elsewhere")
    assert keeper.round()
    assert _state(db, job_id) == "running"


def test_a_worker_asked_to_drain_hears_of_it(db: Database, monkeypatch: pytest.MonkeyPatch):
    """By the command, which takes it back too, and refuses unknown workers and those that have stopped."""
    assert _touch(db) is False
    monkeypatch.setenv("TEXELGRAD_DATABASE_URL", db.url.render_as_string(hide_password=False))
    run = CliRunner().invoke
    assert run(workers, ["drain", "w1"]).exit_code == 0
    assert _touch(db) is True
    assert "w1" in run(workers, ["list"]).output
    assert run(workers, ["drain", "w1", "--undo"]).exit_code == 0
    assert _touch(db) is False
    refused = run(workers, ["drain", "w2"])
    assert refused.exit_code == 1
    assert "there is no worker w2" in refused.output
    with db.write() as session:
        repository.mark_stopped(session, "w1", "its process ended without a word")
    refused = run(workers, ["drain", "w1"])
    assert refused.exit_code == 1
    assert "worker w1 has stopped" in refused.output


def test_workers_that_nobody_has_seen_for_long_are_forgotten(db: Database):
    _touch(db)
    with db.write() as session:
        repository.forget_workers(session, now_us(session) - 10_000_000)
        assert session.get(Worker, "w1") is not None
        repository.forget_workers(session, now_us(session) + 1)
    with db.read() as session:
        assert session.get(Worker, "w1") is None


def test_releasing_touches_no_other_worker(db: Database):
    """Each job that w1 held is queued again; w2 goes on."""
    ids = [queue_job(db) for _ in range(3)]
    for name in ("w1", "w2", "w1"):
        claim(db, name)
    with db.write() as session:
        assert sorted(repository.release_attempts(session, "w1")) == sorted([ids[0], ids[2]])
    assert [_state(db, job_id) for job_id in ids] == ["queued", "running", "queued"]
    again = try_claim(db)
    assert again is not None
    assert (again.job_id, again.number) == (ids[0], 2)
