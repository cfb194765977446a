"""The database holds other people's data: it, and what SQLite lays beside it, is for its owner only."""

from __future__ import annotations

from pathlib import Path

from texelgrad.db import Database, upgrade


def test_the_database_is_private(tmp_path: Path):
    """Under any umask; the folder too, where it is made for it."""
    database = Database(f"sqlite:///{tmp_path / 'data' / 'texelgrad.db'}")
    upgrade(database)
    with database.write() as session:
        files = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "data").glob("*.db*")}
        session.rollback()
    database.close()
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert len(files) >= 3  # the write-ahead log and its index are there while somebody is connected
    assert {name: mode for name, mode in files.items() if mode != 0o600 and not name.endswith(".lock")} == {}
