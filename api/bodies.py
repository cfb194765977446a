"""Request bodies in JSON, limited and strict."""

from __future__ import annotations

import json
from typing import Any

from flask import request
from werkzeug.exceptions import RequestEntityTooLarge

from texelgrad.errors import Fault, Invalid, TooLarge
from texelgrad.jsonable import is_deeper

_MAX_DEPTH = 100  # a spec has about ten; what is far deeper would overflow whoever walks through it


def read_json(max_bytes: int, setting: str | None = None) -> Any:
    """The request's body as JSON; raises Invalid, or TooLarge, which names the setting that says how much is allowed."""
    request.max_content_length = max_bytes
    try:
        body = request.get_data()
    except RequestEntityTooLarge as error:
        raise too_large(max_bytes, setting) from error
    if request.mimetype != "application/json":
        raise Invalid([Fault("Content-Type", "is not JSON", request.mimetype, "application/json")])
    try:
        value = json.loads(body, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except ValueError as error:
        # Python says of a number of thousands of digits how to let it in, which is no caller's business.
        why = "a number has too many digits" if str(error).startswith("Exceeds the limit") else error
        message = f"is not JSON: {why}" if body else "is empty"
        raise Invalid([Fault("(the whole)", message, None, "RFC 8259")]) from error
    except RecursionError as error:
        raise _too_deep() from error
    if is_deeper(value, _MAX_DEPTH):
        raise _too_deep()
    return value


def _too_deep() -> Invalid:
    legal = f"at most {_MAX_DEPTH} lists and objects inside one another"
    return Invalid([Fault("(the whole)", "is nested too deeply", None, legal)])


def too_large(max_bytes: int, setting: str | None, size: int | None = None) -> TooLarge:
    """What to raise for a request of more bytes than allowed; `size` is its Content-Length where not told."""
    size = request.content_length if size is None else size
    named = f", set by {setting}" if setting else ""
    has = "has too many bytes" if size is None else f"has {size} bytes"
    return TooLarge(
        [
            Fault(
                "(body)", f"{has}; at most {max_bytes} are allowed{named}", size, f"at most {max_bytes} bytes"
            )
        ]
    )


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different: of two values for one, nobody knows which was meant."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:100]!r} stands twice in one object")
    return made
