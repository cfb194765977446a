"""Blueprints under /v1 whose decorators keep the types of what they decorate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from flask import Response
from flask_openapi3.blueprint import APIBlueprint

View = TypeVar("View", bound=Callable[..., Response])


class Routes:
    """One file's routes."""

    def __init__(self, name: str) -> None:
        self.blueprint = APIBlueprint(name, __name__, url_prefix="/v1")

    def get(self, rule: str, summary: str) -> Callable[[View], View]:
        """Answer GET with the decorated function."""
        return cast("Callable[[View], View]", self.blueprint.get(rule, summary=summary))

    def post(self, rule: str, summary: str) -> Callable[[View], View]:
        """Answer POST with the decorated function."""
        return cast("Callable[[View], View]", self.blueprint.post(rule, summary=summary))

    def put(self, rule: str, summary: str) -> Callable[[View], View]:
        """Answer PUT with the decorated function."""
        return cast("Callable[[View], View]", self.blueprint.put(rule, summary=summary))

    def delete(self, rule: str, summary: str) -> Callable[[View], View]:
        """Answer DELETE with the decorated function."""
        return cast("Callable[[View], View]", self.blueprint.delete(rule, summary=summary))
