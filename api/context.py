"""What routes need: settings, database, hints. One object for each application, found through Flask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from flask import Flask, current_app

from api.auth import caller
from api.hints import Hints
from api.limits import RateLimit
from texelgrad.config import Settings
from texelgrad.db import Database
from texelgrad.quota import Quota

if TYPE_CHECKING:
    from api.streams import Limit

_NAME = "texelgrad"


@dataclass(frozen=True)
class Services:
    """The application's own connections."""

    settings: Settings
    db: Database
    hints: Hints
    streams: Limit
    rates: RateLimit

    @property
    def owner_id(self) -> str:
        """Whose things this request may see."""
        return caller().owner_id

    @property
    def quota(self) -> Quota:
        """How much the owner may have."""
        return caller().quota

    def close(self) -> None:
        """Stop the threads and close the connections."""
        self.hints.close()
        self.db.close()


def install(app: Flask, services: Services) -> None:
    """Make `services` those of the application."""
    app.extensions[_NAME] = services


def services() -> Services:
    """Those of the application that answers this request."""
    return cast(Services, current_app.extensions[_NAME])
