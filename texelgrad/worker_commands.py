"""`texelgrad workers ...`: commands about workers. They need the database's address, not the service's."""

from __future__ import annotations

import click
from rich.table import Table

from texelgrad.cli_database import command_database
from texelgrad.console import Readable, console


@click.group(cls=Readable)
def workers() -> None:
    """See workers, and take them out of service. Reads TEXELGRAD_DATABASE_URL, or TEXELGRAD_DATA_DIR."""


@workers.command("list")
def list_() -> None:
    """List the workers that have not stopped."""
    from texelgrad import repository

    table = Table(box=None)
    for heading in ("id", "state", "attempt", "renderer"):
        table.add_column(heading, no_wrap=heading == "id")
    with command_database() as database, database.read() as session:
        for worker in repository.list_workers(session):
            if worker.state != "stopped":
                table.add_row(worker.id, worker.state, worker.attempt_id, worker.renderer)
    console().print(table)


@workers.command()
@click.argument("worker_id")
@click.option("--undo", is_flag=True, help="Let it take jobs again.")
def drain(worker_id: str, undo: bool) -> None:
    """Let a worker finish its job and take no other: it can be stopped then without losing work."""
    from texelgrad import repository

    with command_database() as database, database.write() as session:
        repository.request_drain(session, worker_id, draining=not undo)
    click.echo(f"{worker_id} takes jobs again" if undo else f"{worker_id} takes no more jobs")
