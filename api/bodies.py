"""Request bodies in JSON, limited and strict."""

from __future__ import annotations

import json
from typing import Any

from flask import request

from texelgrad.errors import Fault, Invalid


def read_json(max_bytes: int) -> Any:
    """The request's body as JSON; raises Invalid, or werkzeug's 413."""
    request.max_content_length = max_bytes
    body = request.get_data()
    if request.mimetype != "application/json":
        raise Invalid([Fault("Content-Type", "is not JSON", request.mimetype, "application/json")])
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Invalid([Fault("(the whole)", f"is not JSON: {error}", None, "RFC 8259")]) from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
