"""Who is calling: by key, by the session that a key opened, or, on loopback without keys, the one local owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from flask import Flask, Response, g, request
from sqlalchemy.exc import OperationalError

from texelgrad.config import Settings
from texelgrad.db import Database, now_us
from texelgrad.errors import Forbidden, Unauthorized
from texelgrad.keys import Role, is_loopback, keys_required, secret_hash
from texelgrad.models_access import ApiKey
from texelgrad.quota import Quota
from texelgrad.repository import keys

if TYPE_CHECKING:
    from api.limits import RateLimit

COOKIE = "texelgrad_session"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OPEN = frozenset({"/healthz", "/readyz", "/openapi.json", "/v1/session"})
_READS = frozenset({"/v1/estimates"})  # POSTs that change nothing
_FAILURES_PER_MINUTE = 60  # wrong keys from one address


@dataclass(frozen=True)
class Caller:
    """On whose behalf a request comes, and what it may do."""

    owner_id: str
    role: Role
    quota: Quota
    key_id: str | None = None


def caller() -> Caller:
    """Who makes this request."""
    return cast(Caller, g.caller)


def require_admin() -> None:
    """Let only an admin go on; raises Forbidden."""
    if caller().role != Role.ADMIN:
        raise Forbidden("This needs a key with the role admin.")


def register(app: Flask, settings: Settings, db: Database, rates: RateLimit) -> None:
    """Find out who calls before any route runs, and refuse who may not. Raises Unavailable without keys on a network."""
    required = keys_required(settings)

    @app.before_request
    def _identify() -> Response | None:  # pyright: ignore[reportUnusedFunction]
        if request.path in _OPEN or request.blueprint == "dashboard" or request.endpoint is None:
            return None
        g.caller = identify(settings, db, rates, required=required)
        role = g.caller.role
        if role == Role.READ and request.method not in _SAFE and request.path not in _READS:
            raise Forbidden("A key with the role read can't change anything.")
        return None


def identify(settings: Settings, db: Database, rates: RateLimit, *, required: bool) -> Caller:
    """The caller of the present request; raises Unauthorized or TooMany."""
    shown = request.headers.get("Authorization")
    cookie = request.cookies.get(COOKIE)
    if shown is None and cookie is None:
        if required or not _is_local():
            raise Unauthorized("An API key is needed: Authorization: Bearer tg_...")
        return Caller(settings.owner_id, Role.ADMIN, Quota(settings.max_jobs, settings.max_stored_bytes))
    if shown is not None:
        key = find_key(db, rates, shown.removeprefix("Bearer ").strip())
    else:
        with db.read() as session:
            key = keys.find_session_key(session, secret_hash(cookie or ""))
        if key is None:
            raise Unauthorized("The session has ended: log in again.")
    rate = settings.rate_per_minute if key.rate_per_minute is None else key.rate_per_minute
    rates.take(key.id, rate)
    quota = Quota(
        settings.max_jobs if key.max_jobs is None else key.max_jobs,
        settings.max_stored_bytes if key.max_bytes is None else key.max_bytes,
    )
    return Caller(key.owner_id, Role(key.role), quota, key.id)


def find_key(db: Database, rates: RateLimit, text: str) -> ApiKey:
    """The valid key with this text; raises Unauthorized, and TooMany for an address that goes on guessing."""
    with db.read() as session:
        key = keys.find_key(session, secret_hash(text))
        stale = key is not None and keys.needs_touch(key, now_us(session))
    if key is None:
        rates.take(f"wrong key from {request.remote_addr}", _FAILURES_PER_MINUTE)
        raise Unauthorized("There is no such key, or it is revoked.")
    if stale:
        try:
            with db.write() as session:
                keys.touch_key(session, key.id)
        except OperationalError:
            pass  # a busy database: the next request notes it
    return key


def _is_local() -> bool:
    """Whether this machine itself asks; what a proxy hands on may come from anywhere."""
    forwarded = any(name in request.headers for name in ("X-Forwarded-For", "Forwarded", "Via"))
    return not forwarded and is_loopback(request.remote_addr or "")
