"""Errors as problem documents (RFC 9457): what went wrong, a stable code, and every fault with its field."""

from __future__ import annotations

import json
import logging
import math
from typing import Any

from flask import Flask, Response, request
from pydantic import ValidationError
from sqlalchemy.exc import OperationalError
from werkzeug.exceptions import HTTPException, NotFound, RequestEntityTooLarge

from api.bodies import too_large
from api.context import services
from api.models import Query
from texelgrad import errors
from texelgrad.jsonable import jsonable
from texelgrad.spec_faults import faults_of

_log = logging.getLogger(__name__)
_STATUS: dict[type[errors.TexelgradError], tuple[int, str]] = {
    errors.Unauthorized: (401, "It is not known who is calling"),
    errors.Forbidden: (403, "The caller may not do this"),
    errors.TooMany: (429, "The caller has or asks too much"),
    errors.Invalid: (422, "The request is not valid"),
    errors.TooLarge: (413, "The request is too large"),
    errors.NotFound: (404, "There is no such thing"),
    errors.Conflict: (409, "The state of the thing forbids this"),
    errors.Fenced: (409, "The attempt belongs to somebody else"),
    errors.Damaged: (500, "What is stored is damaged"),
    errors.Unavailable: (503, "Something that the service needs is not there"),
}


def problem(
    status: int,
    code: str,
    title: str,
    detail: str,
    faults: list[dict[str, Any]] | None = None,
    more: int = 0,
    **headers: str,
) -> Response:
    """A problem document; `more` faults are not listed; underscores in the names of headers stand for hyphens."""
    body = {
        "type": f"urn:texelgrad:problem:{code}",
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "errors": faults or [],
        **({"more": more} if more else {}),
    }
    text = json.dumps(jsonable(body), separators=(",", ":"), allow_nan=False)
    response = Response(text, status, mimetype="application/problem+json")
    for name, value in headers.items():
        response.headers[name.replace("_", "-")] = value
    return response


def invalid_request(error: ValidationError) -> Response:
    """The answer to wrong path or query parameters; flask-openapi3 hands their errors over."""
    models = {model.__name__: model for model in Query.__subclasses__()}
    return _from_error(errors.Invalid(faults_of(error, models.get(error.title, Query))))


def register(app: Flask) -> None:
    """Answer every error of the application with a problem document."""
    app.register_error_handler(errors.TexelgradError, _from_error)
    app.register_error_handler(HTTPException, _from_http)
    app.register_error_handler(OperationalError, _from_database)
    app.register_error_handler(Exception, _from_anything)


def _from_error(error: errors.TexelgradError) -> Response:
    for kind in type(error).__mro__:
        if kind in _STATUS:
            status, title = _STATUS[kind]
            if isinstance(error, errors.Invalid):
                faults = [fault.as_dict() for fault in error.faults]
                return problem(status, error.code, title, str(error), faults, error.more)
            return problem(status, error.code, title, str(error), None, 0, **_headers(error))
    return _from_anything(error)


def _headers(error: errors.TexelgradError) -> dict[str, str]:
    """What the answer says besides its document."""
    if isinstance(error, errors.Unauthorized):
        return {"WWW_Authenticate": "Bearer"}
    if isinstance(error, (errors.TooMany, errors.Overloaded)):
        return {"Retry_After": str(max(1, math.ceil(error.retry_after_s)))}
    return {}


def _from_http(error: HTTPException) -> Response:
    if isinstance(error.response, Response):  # an answer that somebody made already
        return error.response
    if isinstance(error, RequestEntityTooLarge):
        return _from_error(_of_upload())
    if isinstance(error, NotFound):  # the routes raise our own, so there is no such route
        detail = f"There is nothing at {request.path[:200]}; /openapi.json lists every address."
        return _from_error(errors.NotFound(detail))
    name = error.name or "Error"
    response = problem(error.code or 500, name.lower().replace(" ", "_"), name, error.description or name)
    for key, value in error.get_headers():
        if key.lower() not in ("content-type", "content-length"):
            response.headers[key] = value
    return response


def _of_upload() -> errors.TooLarge:
    """What an upload beyond Flask's limits is; read_json raises its own."""
    size, limit = request.content_length, services().settings.max_upload_bytes
    if size is None or size > limit:
        return too_large(limit, "TEXELGRAD_MAX_UPLOAD_BYTES")
    fault = errors.Fault("(form)", "has too many or too long fields", None, "the file, and short texts")
    return errors.TooLarge([fault])


def _from_database(error: OperationalError) -> Response:
    _log.error("the database does not answer: %s", error)
    title, detail = "The database does not answer", "Try again soon; /readyz says when it is back."
    return problem(503, "unavailable", title, detail, Retry_After="2")


def _from_anything(error: Exception) -> Response:
    _log.error("unexpected error", exc_info=error)
    return problem(500, "internal", "The service failed", "The log of the service says more.")
