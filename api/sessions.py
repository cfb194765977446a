"""The dashboard's log-in: a key is exchanged for a cookie that scripts can't read and other sites can't send."""

from __future__ import annotations

import secrets
from typing import Any, cast

from flask import Response, request

from api.auth import COOKIE, find_key, identify
from api.bodies import read_json
from api.context import services
from api.responses import json_response, no_content
from api.routing import Routes
from texelgrad.errors import Fault, Invalid
from texelgrad.keys import keys_required, secret_hash
from texelgrad.repository import keys

routes = Routes("sessions")
_LASTS_S = 12 * 3600
_MAX_BYTES = 4096


@routes.post("/session", "Log in with a key")
def post_session() -> Response:
    """204 and a session cookie for `{"key": "tg_..."}`; 401 where it is no valid key."""
    own = services()
    body = read_json(_MAX_BYTES)
    text = cast(dict[str, Any], body).get("key") if isinstance(body, dict) else None
    if not isinstance(text, str):
        raise Invalid([Fault("key", "is missing", None, "an API key")])
    key = find_key(own.db, own.rates, text)
    value = secrets.token_urlsafe(32)
    with own.db.write() as session:
        keys.open_session(session, key.id, secret_hash(value), _LASTS_S)
    response = no_content()
    response.set_cookie(
        COOKIE, value, max_age=_LASTS_S, httponly=True, samesite="Strict", secure=request.is_secure
    )
    return response


@routes.get("/session", "Who is calling")
def get_session() -> Response:
    """Owner and role; 401 where a key is needed and none was shown."""
    own = services()
    who = identify(own.settings, own.db, own.rates, required=keys_required(own.settings))
    return json_response({"owner_id": who.owner_id, "role": who.role, "key_id": who.key_id})


@routes.delete("/session", "Log out")
def delete_session() -> Response:
    """204, whether or not there was a session."""
    own = services()
    if value := request.cookies.get(COOKIE):
        with own.db.write() as session:
            keys.close_session(session, secret_hash(value))
    response = no_content()
    response.delete_cookie(COOKIE, httponly=True, samesite="Strict")
    return response
