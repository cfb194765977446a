"""Two machines' worth of the service on one PostgreSQL and one Redis: they share the work, and either may be lost."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from sqlalchemy import func, select

from texelgrad.models import MetricChunk

from .conftest import SETTINGS
from .settled import SETTLE_S, assert_settled, causes, database_of, finish
from tests.e2e.stack import ROOT, Stack, wait_until
from tests.integration.postgres import PostgresServer

# Minutes long; the kills stand for them in the default run. A busy machine is no failure.
pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]
DONE = "completed"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that may be stopped and started."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.stop()
        server.remove()


@contextmanager
def _redis(folder: Path) -> Generator[str]:
    """A redis-server; gives its URL."""
    socket = folder / "redis.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_until(socket.exists, "redis-server")
        yield f"redis+socket://{socket}"
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture(scope="module")
def _two(  # pyright: ignore[reportUnusedFunction]
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[Stack, Stack]]:
    with _redis(tmp_path_factory.mktemp("redis")) as broker:
        settings = {**SETTINGS, "database_url": postgres.url.format("postgres"), "broker_url": broker}
        with Stack(settings) as first, Stack(settings) as second:
            yield first, second


@pytest.fixture
def pair(weights: bytes, _two: tuple[Stack, Stack]) -> tuple[Stack, Stack]:
    """Two services on one database, each with API, keeper and a warm worker. The weights are made before."""
    for stack in _two:
        stack.settle(SETTLE_S)
    return _two


def _drain(stack: Stack, worker_id: str, *options: str) -> None:
    """As an operator does it."""
    command = [sys.executable, "-m", "texelgrad.cli", "workers", "drain", worker_id, *options]
    subprocess.run(command, cwd=ROOT, env=stack.environment, check=True, capture_output=True)


def _rest(stack: Stack) -> str:
    """Let a stack's worker take no more jobs; answers its id."""
    worker_id = stack.worker()["id"]
    _drain(stack, worker_id)
    wait_until(lambda: stack.worker()["state"] == "draining", "the worker heeds it")
    return worker_id


def test_workers_share_the_jobs(pair: tuple[Stack, Stack], spec: dict[str, Any], weights: bytes):
    """Posted to either API, each job is done once, by one worker or the other, with the same bits."""
    first, second = pair
    jobs = [stack.client.create_job(spec)["id"] for stack in (first, second, first, second)]
    done = [finish(first, job_id) for job_id in jobs]
    assert [causes(job) for job in done] == [[DONE]] * 4
    assert {job["attempts"][0]["worker_id"] for job in done} == {first.worker()["id"], second.worker()["id"]}
    assert_settled(first, jobs, weights, also=[second])


def test_a_zombie_writes_nothing(pair: tuple[Stack, Stack], spec: dict[str, Any], weights: bytes):
    """Frozen until its lease is gone and another worker has the job, then let go: all that it still sends is refused."""
    first, second = pair
    resting = _rest(second)
    frozen = [*first.celery_child(), *first.runners(), *_family(first.browsers())]
    job = first.client.create_job(spec)
    first.wait_for_step(job, 700)
    for process in frozen:
        process.suspend()
    wait_until(lambda: causes(first.client.job(job["id"])) == ["lease_expired"], "the lease runs out")
    zombie = first.client.job(job["id"])["attempts"][0]["id"]
    points = _chunks(first, zombie)
    _drain(second, resting, "--undo")
    wait_until(lambda: len(first.client.job(job["id"])["attempts"]) == 2, "the other worker takes it")
    for process in frozen:
        process.resume()
    done = finish(first, job["id"])
    assert causes(done) == ["lease_expired", DONE]
    assert done["attempts"][1]["worker_id"] == resting
    assert_settled(first, [job["id"]], weights, also=[second])
    assert _chunks(first, zombie) == points


def test_a_machine_that_is_lost(pair: tuple[Stack, Stack], spec: dict[str, Any], weights: bytes):
    """All of it dies at once, and nobody near can tell: the lease runs out, and the other machine goes on."""
    first, second = pair
    resting = _rest(second)
    job = second.client.create_job(spec)
    second.wait_for_step(job, 700)
    first.process.kill()
    lost_at = time.monotonic()
    first.wait_for_end()
    wait_until(lambda: causes(second.client.job(job["id"])) == ["lease_expired"], "the lease runs out")
    took_s = time.monotonic() - lost_at
    print(f"a lost machine was noticed after {took_s:.1f} s, lease {SETTINGS['lease_s']} s")  # noqa: T201
    assert first.left_behind() == []
    _drain(second, resting, "--undo")
    assert causes(finish(second, job["id"])) == ["lease_expired", DONE]
    first.start()
    assert_settled(second, [job["id"]], weights, also=[first])


def test_postgres_that_is_restarted(
    pair: tuple[Stack, Stack], postgres: PostgresServer, spec: dict[str, Any], weights: bytes
):
    """What could not be stored is done again; no attempt that it cost counts against its job."""
    first, second = pair
    jobs = [first.client.create_job(spec)["id"] for _ in range(3)]
    first.wait_for_step(first.client.job(jobs[0]), 700)
    postgres.stop()
    postgres.start()
    wait_until(lambda: _is_ready(first) and _is_ready(second), "both APIs are ready again")
    for job_id in jobs:
        job = finish(first, job_id)
        assert set(causes(job)) <= {"no_storage", "lease_expired", DONE}
    assert_settled(first, jobs, weights, also=[second])


def _family(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [each for process in processes for each in (process, *process.children(recursive=True))]


def _is_ready(stack: Stack) -> bool:
    return httpx.get(f"{stack.url}readyz", trust_env=False).status_code == 200


def _chunks(stack: Stack, attempt_id: str) -> int:
    """How often an attempt's points were written."""
    database = database_of(stack)
    try:
        with database.read() as session:
            query = select(func.count()).select_from(MetricChunk).where(MetricChunk.attempt_id == attempt_id)
            return session.scalar(query) or 0
    finally:
        database.close()
