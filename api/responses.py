"""JSON answers: compact, non-finite numbers as strings, with an ETag where it is worth one."""

from __future__ import annotations

import hashlib
from typing import Any

from flask import Response, request
from pydantic_core import to_json


def json_response(body: Any, status: int = 200, **headers: str) -> Response:
    """An answer; underscores in the names of headers stand for hyphens."""
    response = Response(to_json(body, inf_nan_mode="strings"), status, mimetype="application/json")
    for name, value in headers.items():
        response.headers[name.replace("_", "-")] = value
    return response


def no_content() -> Response:
    """204: done, and nothing to say about it; no body, so no type of one."""
    response = Response(status=204)
    del response.headers["Content-Type"]
    return response


def tagged_response(body: Any, **headers: str) -> Response:
    """An answer with an ETag of its content; 304 where the caller has it already."""
    response = json_response(body, 200, **headers)
    response.set_etag(hashlib.sha256(response.get_data()).hexdigest()[:32])
    response.headers["Cache-Control"] = "no-cache"  # keep it, but ask each time
    response.make_conditional(request)  # changes it in place
    return response
