"""The HTTP API: routes parse, call and serialize; everything else is in texelgrad. Never imports the worker."""

from api.app import create_app

__all__ = ["create_app"]
