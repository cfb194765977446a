"""/metrics and /readyz?deep=1, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update

from texelgrad import repository
from texelgrad.config import Settings
from texelgrad.db import Database, now_us
from texelgrad.keys import Role, new_key
from texelgrad.models import Attempt, Job
from texelgrad.repository import keys

from .http import http_client, post_job
from .steps import claim, finish, succeed


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    """A client of the API on the test's database."""
    with http_client(settings) as opened:
        yield opened


def gauges(client: FlaskClient) -> dict[str, float]:
    """Every sample by its name and labels, as a Prometheus server reads them."""
    response = client.get("/metrics")
    assert response.status_code == 200, response.text
    assert response.content_type.startswith("text/plain")
    return {
        sample.name
        + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }


def test_gauges(client: FlaskClient, db: Database):
    """What the tables hold: jobs, workers, attempts, bytes."""
    for _ in range(3):
        post_job(client)
    finish(db, claim(db), "failed", "internal")
    claimed = claim(db)
    with db.write() as session:
        repository.touch_worker(session, "w", host="h", pid=1, queue="gpu", state="busy")
        session.execute(update(Attempt).where(Attempt.id == claimed.attempt_id).values(lease_until=1))
        session.execute(
            update(Job).where(Job.state == "queued").values(created_at=Job.created_at - 60_000_000)
        )
    found = gauges(client)
    assert found["texelgrad_jobs queue=gpu state=queued"] == 1
    assert found["texelgrad_jobs queue=gpu state=running"] == 1
    assert found["texelgrad_jobs_ended_last_hour cause=internal state=failed"] == 1
    assert 60 <= found["texelgrad_oldest_queued_seconds queue=gpu"] < 120
    assert found["texelgrad_attempts state=claimed"] == 1
    assert found["texelgrad_expired_leases"] == 1
    assert found["texelgrad_workers queue=gpu state=busy"] == 1
    assert found["texelgrad_artifact_bytes kind=dataset"] == 20 * 12
    assert found["texelgrad_webhook_deliveries_pending"] == 0
    assert ("texelgrad_disk_free_bytes" in found) == db.is_sqlite


def test_gauges_are_for_admins(settings: Settings, db: Database):
    """They count everybody's jobs."""
    with http_client(settings.model_copy(update={"require_keys": True})) as client:
        assert client.get("/metrics").status_code == 401
        for role, status in ((Role.USER, 403), (Role.ADMIN, 200)):
            new = new_key()
            with db.write() as session:
                keys.create_key(session, "ada", role, "", new)
            response = client.get("/metrics", headers={"Authorization": f"Bearer {new.text}"})
            assert response.status_code == status


def test_deep_readiness(client: FlaskClient, db: Database):
    """Only after a real run, or a worker's own proof, within ten minutes."""
    assert client.get("/readyz").status_code == 200
    response = client.get("/readyz?deep=1")
    assert (response.status_code, response.get_json()["code"]) == (503, "not_training")
    assert "None ever did" in response.get_json()["detail"]
    post_job(client)
    succeed(db, claim(db))
    assert client.get("/readyz?deep=1").get_json()["trains"] is True
    with db.write() as session:
        session.execute(update(Attempt).values(ended_at=Attempt.ended_at - 900_000_000))
    assert "15 minutes ago" in client.get("/readyz?deep=1").get_json()["detail"]
    with db.write() as session:
        now = now_us(session)
        repository.touch_worker(session, "w", host="h", pid=1, queue="gpu", state="idle", proved_at=now)
    assert client.get("/readyz?deep=1").status_code == 200
