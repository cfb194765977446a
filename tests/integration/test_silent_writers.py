"""A worker that freezes in the middle of a transaction: its locks must not keep others from its attempt. PostgreSQL's case."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from texelgrad import db as module
from texelgrad import repository
from texelgrad.db import Database
from texelgrad.repository.locks import lock_attempt

from .steps import claim, queue_job

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
_SHOW = text("SHOW idle_in_transaction_session_timeout")


def test_only_writers_are_ended(db: Database):
    """A reader may wait for as long as somebody's download takes."""
    with db.write() as session:
        assert session.scalar(_SHOW) == "10s"
    with db.read() as session:
        assert session.scalar(_SHOW) == "0"


def test_its_attempt_can_be_taken(db: Database, monkeypatch: pytest.MonkeyPatch):
    """The database ends the silent session, so that the reaper finds the row; the worker's commit fails."""
    monkeypatch.setattr(
        module, "_END_IF_SILENT", text("SET LOCAL idle_in_transaction_session_timeout = '2s'")
    )
    job_id = queue_job(db)
    claimed = claim(db, lease_s=0.0)
    locked, thawed = threading.Event(), threading.Event()
    failed: list[DBAPIError] = []

    def freeze() -> None:
        try:
            with db.write() as session:
                lock_attempt(session, claimed.attempt_id, claimed.token)
                locked.set()
                thawed.wait()
                repository.append_log(session, claimed.attempt_id, claimed.token, "info", "awake again")
        except DBAPIError as error:
            failed.append(error)

    worker = threading.Thread(target=freeze)
    worker.start()
    assert locked.wait(60)
    reaped: list[str] = []
    while not reaped:  # the row is skipped as long as it is locked
        with db.write() as session:
            reaped = repository.reap_expired(session)
    thawed.set()
    worker.join()
    assert reaped == [job_id]
    assert failed
