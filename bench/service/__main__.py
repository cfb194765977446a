"""Measures the service: `./scripts/bench service`, or python -m bench.service [--short] [--parts posts ...]

Writes a table and the figures as JSON, and says which goals were missed. Wants a quiet machine; takes about five minutes, `--short`
one and a half, which shows that everything works but not how fast it is.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from bench.service import cancels, losses, posts, saving, stages
from bench.service.figures import Row, machine, table

from tests.integration.postgres import PostgresServer

PARTS = ("posts", "cancels", "losses", "saving", "stages")


def main() -> None:
    """Measure what is asked for, on SQLite and PostgreSQL where it matters."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="a few seconds each: whether it works")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--out", type=Path, default=Path("var/bench/service"), help="folder of the results")
    arguments = parser.parse_args()
    short: bool = arguments.short
    seconds = 2.0 if short else 8.0
    on_both: dict[str, Callable[[str, str], list[Row]]] = {
        "posts": lambda name, url: posts.measure(name, url, seconds),
        "saving": lambda name, url: saving.measure(name, url, 15 if short else 150, seconds),
        "stages": lambda name, url: stages.measure(name, url, 2 if short else 6),
    }
    once: dict[str, Callable[[], list[Row]]] = {
        "cancels": lambda: cancels.measure(2 if short else 12),
        "losses": lambda: losses.measure(1),
    }
    results = _Results(arguments.out)
    with _postgres() as postgres:
        for part in arguments.parts:
            if part in once:
                results.add(part, once[part])
                continue
            for name, url in (("SQLite", ""), ("PostgreSQL", postgres.database())):
                results.add(f"{part}, {name}", lambda part=part, name=name, url=url: on_both[part](name, url))
    print(results.text)
    if missed := [row.name for row in results.rows if row.reached is False]:
        sys.exit(f"missed: {', '.join(missed)}")


class _Results:
    """What was measured so far, on disk after each part."""

    def __init__(self, folder: Path) -> None:
        self.rows: list[Row] = []
        self._folder = folder
        self._began_s = time.monotonic()
        self._machine = f"{machine()} before"
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def text(self) -> str:
        """The table, and where and how long it was measured."""
        return f"{self._machine}; {time.monotonic() - self._began_s:.0f} s\n\n{table(self.rows)}\n"

    def add(self, what: str, measure: Callable[[], list[Row]]) -> None:
        """Measure a part, and write all that is known."""
        began_s = time.monotonic()
        self.rows += measure()
        print(f"{what}: {time.monotonic() - began_s:.0f} s", file=sys.stderr)
        (self._folder / "service.md").write_text(self.text)
        found = {"machine": self._machine, "rows": [asdict(row) for row in self.rows]}
        (self._folder / "service.json").write_text(json.dumps(found, indent=1))


class _Postgres:
    """A server that syncs as in production, and gives a new database each time."""

    def __init__(self) -> None:
        self._server = PostgresServer(durable=True)
        self._count = 0

    def start(self) -> None:
        self._server.start()

    def database(self) -> str:
        """The URL of an empty database."""
        self._count += 1
        name = f"bench{self._count}"
        url = make_url(self._server.url.format("postgres")).set(drivername="postgresql")
        with psycopg.connect(url.render_as_string(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self._server.url.format(name)

    def stop(self) -> None:
        self._server.stop()
        self._server.remove()


@contextmanager
def _postgres() -> Generator[_Postgres]:
    postgres = _Postgres()
    postgres.start()
    try:
        yield postgres
    finally:
        postgres.stop()


if __name__ == "__main__":
    main()
