"""Engines, sessions and migrations for SQLite and PostgreSQL. Nothing is opened at import."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from pydantic_core import to_json
from sqlalchemy import Engine, create_engine, event, make_url, text
from sqlalchemy.orm import Session, sessionmaker

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"
_MIGRATION_LOCK = 0x7E7E16AD  # a number of our own for PostgreSQL's advisory locks
_READ_ONLY = "texelgrad_read_only"
_END_IF_SILENT = text("SET LOCAL idle_in_transaction_session_timeout = '10s'")


class Database:
    """One database: its connection pool, and transactions on it.

    A process opens it once and passes it down; never across a fork.
    """

    def __init__(self, url: str) -> None:
        self.url = make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite and self.url.database and self.url.database != ":memory:":
            _make_private(Path(self.url.database))
        options: dict[str, Any] = {} if self.is_sqlite else {"pool_pre_ping": True}
        self.engine = create_engine(self.url, json_serializer=_json, **options)
        if self.is_sqlite:
            _tune_sqlite(self.engine)
        postgres = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        readers = self.engine.execution_options(**({_READ_ONLY: True} if self.is_sqlite else postgres))
        self._writing = sessionmaker(self.engine, expire_on_commit=False)
        self._reading = sessionmaker(readers, expire_on_commit=False)

    @contextmanager
    def write(self) -> Generator[Session]:
        """A session in a transaction that commits at the end, or rolls back on an exception.

        PostgreSQL ends it where it falls silent: a worker that is frozen or cut off in the middle would keep its rows
        locked, and nobody could take its attempt from it.
        """
        with self._writing.begin() as session:
            if not self.is_sqlite:
                session.execute(_END_IF_SILENT)
            yield session

    @contextmanager
    def read(self) -> Generator[Session]:
        """A session that sees one snapshot, and never waits for a writer."""
        with self._reading() as session:
            yield session

    def release_pages(self, pages: int) -> None:
        """Give at most so many free pages of an SQLite file back to the file system; elsewhere nothing."""
        if self.is_sqlite:
            with self.engine.connect() as connection:
                driver: Any = connection.connection.driver_connection
                # A plain execute takes one step of this statement, and each step frees one page.
                driver.executescript(f"PRAGMA incremental_vacuum({pages})")

    def close(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()


def _json(value: Any) -> str:
    return to_json(value).decode()


def _make_private(path: Path) -> None:
    """Make an SQLite file, and its folder, that others can't read; SQLite gives its other files the same mode."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _tune_sqlite(engine: Engine) -> None:
    """WAL, foreign keys, and transactions that take the write lock when they begin.

    A deferred transaction that reads and then writes fails at once with SQLITE_BUSY when somebody wrote between;
    BEGIN IMMEDIATE waits for its turn instead.
    """

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.isolation_level = None  # the driver must not begin by itself
        connection.execute("PRAGMA busy_timeout = 30000")
        if connection.execute("PRAGMA page_count").fetchone() == (0,):
            # Counts only before the first table, and would wait for a writer at each later connection.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        read_only = connection.get_execution_options().get(_READ_ONLY, False)
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")


def now_us(session: Session) -> int:
    """The present in microseconds since 1970 UTC, by the database's clock where it is a server.

    Leases of workers on several machines must not depend on those machines' clocks.
    """
    if session.get_bind().dialect.name == "postgresql":
        query = text("SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint")
        return int(session.execute(query).scalar_one())
    return time.time_ns() // 1000


def alembic_config(database: Database) -> Config:
    """Alembic's configuration for this database, independent of the current folder."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["database"] = database
    return config


def upgrade(database: Database, revision: str = "head") -> None:
    """Bring the schema to `revision`; of several processes that start together, one works and the rest wait."""
    with _migration_lock(database):
        command.upgrade(alembic_config(database), revision)


def downgrade(database: Database, revision: str) -> None:
    """Take the schema back to `revision` ("base" drops everything)."""
    with _migration_lock(database):
        command.downgrade(alembic_config(database), revision)


def revisions(database: Database) -> tuple[str | None, str | None]:
    """The revision that the database is at, and the newest that this code has."""
    with database.engine.connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    return current, ScriptDirectory.from_config(alembic_config(database)).get_current_head()


@contextmanager
def _migration_lock(database: Database) -> Generator[None]:
    if not database.is_sqlite:
        with database.engine.connect() as connection:
            connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _MIGRATION_LOCK})
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _MIGRATION_LOCK})
    elif database.url.database:
        with Path(f"{database.url.database}.migrate.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    else:
        yield
