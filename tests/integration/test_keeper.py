"""The keeper against a real Redis: hints, reaping, deadlines, one holder; and its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from sqlalchemy import update

from texelgrad import repository
from texelgrad.config import Settings
from texelgrad.db import Database, now_us
from texelgrad.hints import TASK, Publisher
from texelgrad.keeper import Keeper
from texelgrad.models import Attempt, Lease
from texelgrad.webhooks import Sender

from .http import http_client, spec_for, upload_points
from .steps import OWNER, claim, queue_job

ROOT = Path(__file__).parents[2]


@pytest.fixture
def redis(settings: Settings) -> Iterator[Redis]:
    """A private redis-server on the settings' socket."""
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", str(settings.redis_socket), "--save", ""],
        stdout=subprocess.DEVNULL,
        cwd=settings.data_dir,
    )
    client = Redis(unix_socket_path=str(settings.redis_socket))
    try:
        deadline = time.monotonic() + 60
        while not settings.redis_socket.exists():
            assert time.monotonic() < deadline, "redis-server does not start"
            time.sleep(0.02)
        yield client
    finally:
        client.close()
        server.terminate()
        server.wait(10)


@pytest.fixture
def publisher(settings: Settings) -> Iterator[Publisher]:
    """Sends hints to that server."""
    opened = Publisher(settings.broker)
    yield opened
    opened.close()


def test_hints_are_topped_up(db: Database, settings: Settings, redis: Redis, publisher: Publisher):
    """As many as jobs can be claimed, at most the limit, and no more for those that wait there already."""
    few = settings.model_copy(update={"max_hints": 4})
    keeper = Keeper(db, publisher, few)
    for _ in range(3):
        queue_job(db)
    queue_job(db, queue="cpu")
    for _ in range(2):
        assert keeper.round()
        assert (publisher.waiting("gpu"), publisher.waiting("cpu")) == (3, 1)
    for _ in range(5):
        queue_job(db)
    keeper.round()
    assert publisher.waiting("gpu") == 4
    message = redis.lindex("gpu", 0)
    assert isinstance(message, bytes)
    assert TASK.encode() in message


def test_a_post_sends_one_hint(db: Database, settings: Settings, redis: Redis, publisher: Publisher):
    """Soon after the answer; a repeated one sends none."""
    with http_client(settings) as client:
        raw = spec_for(upload_points(client))
        for _ in range(2):
            client.post("/v1/jobs", json=raw, headers={"Idempotency-Key": "k"})
        deadline = time.monotonic() + 60
        while publisher.waiting("gpu") < 1:
            assert time.monotonic() < deadline, "no hint came"
            time.sleep(0.01)
    assert publisher.waiting("gpu") == 1


def test_a_round_reaps_and_aborts(db: Database, settings: Settings, redis: Redis, publisher: Publisher):
    """Expired leases go back to the queue, overdue jobs end."""
    lost = queue_job(db)
    claimed = claim(db)
    with db.write() as session:
        past = now_us(session) - 1
        session.execute(update(Attempt).values(lease_until=past))
    overdue = queue_job(db, deadline_at=past)
    Keeper(db, publisher, settings).round()
    with db.read() as session:
        assert repository.get_job(session, OWNER, lost).state == "queued"
        assert repository.get_job(session, OWNER, overdue).state == "aborted"
        assert session.get_one(Attempt, claimed.attempt_id).state == "lost"


def test_only_the_holder_works(db: Database, settings: Settings, redis: Redis, publisher: Publisher):
    """A second keeper does nothing until the first has stopped."""
    first, second = (Keeper(db, publisher, settings) for _ in range(2))
    stop = threading.Event()
    assert first.round()
    assert not second.round()
    stop.set()
    first.run(stop)
    assert second.round()


def test_a_keeper_that_stops_lets_the_next_one_work_at_once(
    db: Database, settings: Settings, redis: Redis, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
):
    """Before its last webhooks are answered: a receiver may take 10 s for that."""
    first, second = (Keeper(db, publisher, settings) for _ in range(2))
    meanwhile: list[bool] = []

    def wait_for_receivers(_sender: Sender) -> None:
        meanwhile.append(second.round())

    monkeypatch.setattr(Sender, "close", wait_for_receivers)
    assert first.round()
    stop = threading.Event()
    stop.set()
    first.run(stop)
    assert meanwhile == [True]


def test_a_broker_that_is_away_stops_no_other_duty(db: Database, settings: Settings, publisher: Publisher):
    """Leases are reaped although no hint can be sent."""
    lost = queue_job(db)
    claim(db)
    with db.write() as session:
        session.execute(update(Attempt).values(lease_until=now_us(session) - 1))
    Keeper(db, publisher, settings).round()
    with db.read() as session:
        assert repository.get_job(session, OWNER, lost).state == "queued"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_process_stops_on_sigterm(db: Database, settings: Settings, redis: Redis, publisher: Publisher):
    """It works, and on SIGTERM ends cleanly and gives up its lease."""
    queue_job(db)
    env = {
        **os.environ,
        "TEXELGRAD_DATA_DIR": str(settings.data_dir),
        "TEXELGRAD_DATABASE_URL": settings.database_url,
        "TEXELGRAD_KEEPER_PERIOD_S": "0.1",
    }
    process = subprocess.Popen([sys.executable, "-m", "texelgrad.keeper"], cwd=ROOT, env=env)
    try:
        deadline = time.monotonic() + 60
        while publisher.waiting("gpu") < 1:
            assert process.poll() is None
            assert time.monotonic() < deadline, "the keeper sent no hint"
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
    with db.read() as session:
        assert session.get_one(Lease, "keeper").until == 0
