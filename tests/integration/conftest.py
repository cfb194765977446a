"""Databases for tests: each test gets a fresh, migrated one, on SQLite and on PostgreSQL."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from texelgrad.config import Settings
from texelgrad.db import Database, upgrade

from .postgres import postgres_server

_count = itertools.count()


def _execute(server: str, statement: str) -> None:
    """Run one statement in the server's maintenance database, outside a transaction."""
    url = make_url(server.format("postgres")).set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(), autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server with a migrated template database; gives its URL."""
    with postgres_server() as server:
        _execute(server, "CREATE DATABASE template_texelgrad")
        database = Database(server.format("template_texelgrad"))
        upgrade(database)
        database.close()
        yield server


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
    """The URL of a fresh, migrated database."""
    if request.param == "sqlite":
        path = tmp_path / "texelgrad.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
        return
    server: str = request.getfixturevalue("postgres")
    name = f"test_{next(_count)}"
    _execute(server, f"CREATE DATABASE {name} TEMPLATE template_texelgrad")
    yield server.format(name)
    _execute(server, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def db(database_url: str) -> Iterator[Database]:
    """The fresh database, opened."""
    database = Database(database_url)
    yield database
    database.close()


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """Settings for that database, with a broker that nobody runs."""
    return Settings(data_dir=tmp_path, database_url=database_url)
