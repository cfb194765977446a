"""Databases for tests: each test gets an empty, migrated one, on SQLite and on PostgreSQL."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import scalar_row
from sqlalchemy import make_url

from texelgrad.config import Settings
from texelgrad.db import Database, upgrade

from .postgres import postgres_server


def _connect(url: str) -> psycopg.Connection:
    """A connection outside a transaction."""
    plain = make_url(url).set(drivername="postgresql").render_as_string()
    return psycopg.connect(plain, autocommit=True)


class PostgresDatabases:
    """Databases on one server. An emptied one serves the next test: to make one costs ten times the CPU."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._free: list[str] = []
        self._count = itertools.count()
        self._execute("CREATE DATABASE template_texelgrad")
        self.template = server.format("template_texelgrad")
        database = Database(self.template)
        upgrade(database)
        database.close()
        with _connect(self.template) as connection:
            self._schema = _schema(connection)

    def take(self) -> str:
        """The name of an empty one."""
        if self._free:
            return self._free.pop()
        name = f"test_{next(self._count)}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE template_texelgrad")
        return name

    def give_back(self, name: str) -> None:
        """End whoever still uses it; what a test changed but the rows is not handed on."""
        with _connect(self.url(name)) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            if _schema(connection) == self._schema:
                _empty(connection, {table for table, *_ in self._schema[1]} - {"alembic_version"})
                self._free.append(name)
                return
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def url(self, name: str) -> str:
        """Where it is."""
        return self._server.format(name)

    def _execute(self, statement: str) -> None:
        """Run one statement in the server's maintenance database."""
        with _connect(self._server.format("postgres")) as connection:
            connection.execute(statement.encode())


def _schema(connection: psycopg.Connection) -> tuple[list[str], list[tuple[str, str, str, str]]]:
    """Alembic's revision, and each column of each table."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        revision = cursor.execute("SELECT version_num FROM alembic_version").fetchall()
    columns = (
        "SELECT table_name, column_name, data_type, coalesce(column_default, '')"
        " FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, column_name"
    )
    return revision, connection.execute(columns).fetchall()


def _empty(connection: psycopg.Connection, tables: set[str]) -> None:
    """Delete all rows. TRUNCATE would make new files for each table."""
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")  # foreign keys are not asked
        for table in sorted(tables):
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresDatabases]:
    """A PostgreSQL server with databases for tests."""
    with postgres_server() as server:
        yield PostgresDatabases(server)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    database = Database(f"sqlite:///{path}")
    upgrade(database)
    database.close()
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty, migrated database."""
    if request.param == "sqlite":
        path = tmp_path / "texelgrad.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
        return
    databases: PostgresDatabases = request.getfixturevalue("postgres")
    name = databases.take()
    yield databases.url(name)
    databases.give_back(name)


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    """The empty database, opened."""
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """Settings for that database, with a broker that nobody runs."""
    return Settings(data_dir=tmp_path, database_url=database_url)
