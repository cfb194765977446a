"""What API, worker, client and CLI share; importing it needs neither SQLAlchemy nor Celery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from texelgrad.client import Client

__version__ = "0.1.0"
__all__ = ["Client", "__version__"]


def __getattr__(name: str) -> Any:
    """Load the client only when it is asked for, so that the service never pays for it."""
    if name == "Client":
        from texelgrad.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
