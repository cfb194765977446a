"""`texelgrad keys`: makes, lists and revokes API keys, directly in the service's database."""

from __future__ import annotations

import click

from texelgrad.cli_database import command_database
from texelgrad.console import Readable

_ROLES = ("admin", "user", "read")


@click.group(cls=Readable)
def keys() -> None:
    """API keys: needed on any address but loopback. Works on the database of the settings."""


@keys.command()
@click.option("--owner", default="local", show_default=True, help="Whose things the key opens.")
@click.option("--role", default="user", show_default=True, type=click.Choice(_ROLES))
@click.option("--name", default="", help="What it is for; shown in the list.")
@click.option("--max-jobs", type=click.IntRange(0), help="Queued and running at once; 0: no limit.")
@click.option("--max-bytes", type=click.IntRange(0), help="Of data sets; 0: no limit.")
@click.option("--rate-per-minute", type=click.IntRange(0), help="Requests; 0: no limit.")
def create(
    owner: str,
    role: str,
    name: str,
    max_jobs: int | None,
    max_bytes: int | None,
    rate_per_minute: int | None,
) -> None:
    """Make a key and show it; only its hash is kept, so it can't be shown again."""
    from texelgrad.keys import Role, new_key
    from texelgrad.repository import keys as repository

    new = new_key()
    with command_database(make=True) as db, db.write() as session:
        key = repository.create_key(
            session,
            owner,
            Role(role),
            name,
            new,
            max_jobs=max_jobs,
            max_bytes=max_bytes,
            rate_per_minute=rate_per_minute,
        )
    click.echo(f"{key.id} for {owner}, role {role}. Keep it, it is shown only once:", err=True)
    click.echo(new.text)


@keys.command(name="list")
@click.option("--owner", help="Only this owner's.")
def list_(owner: str | None) -> None:
    """List keys, the newest first."""
    from texelgrad.repository import keys as repository
    from texelgrad.times import time_text

    rows = [("id", "key", "state", "role", "owner", "created", "last used", "name")]
    with command_database() as db, db.read() as session:
        for key in repository.list_keys(session, owner):
            created, used = ((time_text(at) or "never")[:16] for at in (key.created_at, key.used_at))
            state = "revoked" if key.revoked_at else "valid"
            rows.append((key.id, f"{key.prefix}...", state, key.role, key.owner_id, created, used, key.name))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(map(str.ljust, row, widths)).rstrip())


@keys.command()
@click.argument("key_id")
def revoke(key_id: str) -> None:
    """Make a key worthless at once, with the browser sessions that it opened."""
    from texelgrad.repository import keys as repository

    with command_database() as db, db.write() as session:
        repository.revoke_key(session, key_id)
    click.echo(f"{key_id} is revoked")
