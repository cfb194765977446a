"""Lists in pages: `items`, and the cursor that leads to the next page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from texelgrad.domain import IdPrefix, is_id
from texelgrad.errors import Fault, Invalid

Row = TypeVar("Row")


def checked_cursor(cursor: str | None, prefix: IdPrefix) -> str | None:
    """The cursor, where it can be one of ours; raises Invalid."""
    if cursor is not None and not is_id(cursor, prefix):
        raise bad_cursor(cursor)
    return cursor


def bad_cursor(cursor: str) -> Invalid:
    """What to raise for a text that is no cursor."""
    return Invalid([Fault("cursor", "is no cursor", cursor, "next_cursor of the page before")])


def page(
    found: Sequence[Row], limit: int, view: Callable[[Row], dict[str, Any]], cursor: Callable[[Row], str]
) -> dict[str, Any]:
    """The first `limit` rows as JSON; `found` has one more where another page follows."""
    shown = found[:limit]
    return {
        "items": [view(row) for row in shown],
        "next_cursor": cursor(shown[-1]) if len(found) > limit else None,
    }
