"""The database of the settings, for commands that work without a service; what is wrong with it is a message."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from texelgrad.errors import Unavailable

if TYPE_CHECKING:  # a command needs no database unless it is used
    from texelgrad.db import Database


@contextmanager
def command_database(*, make: bool = False) -> Generator[Database]:
    """The database, open for one command; with `make` it is made, or brought up to date, first.

    Raises Unavailable where it is not there, can't be reached, or has another schema.
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import DBAPIError

    from texelgrad.config import Settings
    from texelgrad.db import Database, revisions, upgrade

    url = make_url(Settings.load().database)
    shown = url.render_as_string(hide_password=True)
    if not make and url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        raise Unavailable(
            f"There is no database {url.database}: `texelgrad serve` makes it. "
            "TEXELGRAD_DATA_DIR names another folder, TEXELGRAD_DATABASE_URL another database."
        )
    database = Database(url.render_as_string(hide_password=False))
    try:
        if make:
            upgrade(database)
        elif (found := revisions(database))[0] != found[1]:
            raise Unavailable(
                f"{shown} has schema {found[0]}, not {found[1]}: run `texelgrad migrate` first."
            )
        yield database
    except DBAPIError as error:
        first = str(error.orig).strip().partition("\n")[0]
        raise Unavailable(f"{shown} can't be used: {first}") from error
    finally:
        database.close()
