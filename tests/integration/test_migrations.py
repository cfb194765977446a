"""Migrations: up and down with data, in step with the models, one head, one migrator at a time."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from texelgrad import repository
from texelgrad.db import Database, alembic_config, downgrade, revisions, upgrade

from .conftest import PostgresDatabases
from .steps import add_points, claim, queue_job, write_artifact


def tables(db: Database) -> set[str]:
    """Names of the tables besides Alembic's own."""
    return set(inspect(db.engine).get_table_names()) - {"alembic_version"}


def test_there_is_one_head(db: Database):
    """Two branches of migrations would make `upgrade` ambiguous."""
    assert len(ScriptDirectory.from_config(alembic_config(db)).get_heads()) == 1


def test_the_models_are_what_the_migrations_make(db: Database):
    """Alembic finds nothing that a new migration would have to do."""
    command.check(alembic_config(db))


def test_down_and_up_with_data(db: Database):
    """The schema can be taken down with rows in every table that a run fills, and be made again."""
    queue_job(db)
    claimed = claim(db)
    add_points(db, claimed, [(1, 0.5)])
    write_artifact(db, claimed, "checkpoint", b"c", step=1)
    current, head = revisions(db)
    assert current is not None
    assert current == head
    made = tables(db)
    downgrade(db, "base")
    assert tables(db) == set()
    assert revisions(db)[0] is None
    upgrade(db)
    assert tables(db) == made
    queue_job(db)


def test_one_step_down_and_up_keeps_the_runs(db: Database):
    """What the first schema holds survives the second being taken back and made again, also what refers to a job."""
    job_id = queue_job(db)
    claimed = claim(db)
    add_points(db, claimed, [(1, 0.5)])
    downgrade(db, "0001")
    upgrade(db)
    with db.read() as session:
        assert repository.get_job(session, "local", job_id).state == "running"
        assert repository.curves(session, job_id)["loss"].values.tolist() == [0.5]
        assert [event.seq for event in repository.events_after(session, job_id, 0)] == [1, 2, 3]


def test_upgrading_twice_changes_nothing(db: Database):
    """The stack migrates at every start."""
    job_id = queue_job(db)
    upgrade(db)
    assert claim(db).job_id == job_id


def test_processes_that_start_together_migrate_once(database_url: str):
    """Each waits for the lock, and finds the work done."""
    first = Database(database_url)
    downgrade(first, "base")
    failures: list[BaseException] = []

    def migrate() -> None:
        db = Database(database_url)
        try:
            upgrade(db)
        except BaseException as error:
            failures.append(error)
            raise
        finally:
            db.close()

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    queue_job(first)
    first.close()


def test_sqlite_is_set_up_for_several_processes(tmp_path: Path):
    """WAL, foreign keys, and pages that can be given back, from the first table on."""
    db = Database(f"sqlite:///{tmp_path / 'new' / 'texelgrad.db'}")
    upgrade(db)
    with db.read() as session:
        found = [
            session.scalar(text(f"PRAGMA {name}")) for name in ("journal_mode", "foreign_keys", "auto_vacuum")
        ]
    assert found == ["wal", 1, 2]
    db.close()


def test_postgres_keeps_chunks_outside_and_uncompressed(postgres: PostgresDatabases):
    """A range of a chunk is then read without the rest of it."""
    db = Database(postgres.template)
    query = (
        "SELECT attstorage FROM pg_attribute WHERE attrelid = 'artifact_chunk'::regclass AND attname = 'data'"
    )
    with db.read() as session:
        assert session.scalar(text(query)) == "e"
    db.close()


def test_a_reader_never_waits_for_a_writer(db: Database):
    """While a write transaction is open, readers see what was before it."""
    job_id = queue_job(db)
    with db.write() as session:
        session.execute(text("UPDATE job SET name = 'changed'"))
        with db.read() as reader:
            assert reader.scalar(text("SELECT name FROM job")) == "points"
    with db.read() as reader:
        assert reader.scalar(text("SELECT name FROM job")) == "changed"
    assert job_id


def test_a_reader_sees_one_snapshot(db: Database):
    """What is committed while it reads does not show, so that an answer is never half old and half new."""
    queue_job(db)
    with db.read() as reader:
        assert reader.scalar(text("SELECT count(*) FROM job")) == 1
        queue_job(db)
        assert reader.scalar(text("SELECT count(*) FROM job")) == 1


def test_a_failed_transaction_leaves_nothing(db: Database):
    """An exception rolls back."""
    queue_job(db)

    def change() -> None:
        with db.write() as session:
            session.execute(text("UPDATE job SET name = 'changed'"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change()
    with db.read() as reader:
        assert reader.scalar(text("SELECT name FROM job")) == "points"
