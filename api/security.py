"""Who may talk to the API: only under its own names, and from browsers only its own pages. Keys: api/auth.py."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from flask import Flask, Response, request

from api.problems import problem
from texelgrad.config import Settings

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_BODIES = frozenset(
    {
        "application/json",
        "application/octet-stream",
        "multipart/form-data",
        "text/csv",
        "application/zip",
        "application/vnd.apache.parquet",
    }
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def register(app: Flask, settings: Settings) -> None:
    """Check every request before its route runs, and harden every answer."""
    allowed = {host.lower() for host in settings.allowed_hosts} | _own_host(settings.host)

    @app.before_request
    def _check() -> Response | None:  # pyright: ignore[reportUnusedFunction]
        # A foreign name that resolves to loopback (DNS rebinding) would make any web page same-origin with us.
        if "*" not in allowed and _host_of(request.host) not in allowed:
            detail = (
                f"This service does not answer to {request.host}; TEXELGRAD_ALLOWED_HOSTS lists its names."
            )
            return problem(421, "wrong_host", "Wrong host", detail)
        return None if request.method in _SAFE else _check_write()

    @app.after_request
    def _harden(response: Response) -> Response:  # pyright: ignore[reportUnusedFunction]
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response


def _check_write() -> Response | None:
    """Refuse what a foreign page could make a browser send: it says where it comes from, or is no plain form."""
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    foreign = origin is not None and urlsplit(origin).netloc.lower() != request.host.lower()
    if foreign or site not in (None, "same-origin", "none"):
        return problem(
            403,
            "foreign_origin",
            "Foreign origin",
            f"A page of {origin or 'another site'} may not change anything here.",
        )
    if (request.content_length or request.content_type) and request.mimetype not in _BODIES:
        detail = f"{request.mimetype or 'A body without a content type'} is not accepted: {', '.join(sorted(_BODIES))}."
        return problem(415, "unsupported_media_type", "Unsupported media type", detail)
    return None


def _own_host(host: str) -> set[str]:
    """The name of the address that we listen on, unless it stands for all of them."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return {host.lower()}
    if address.is_unspecified:
        return set()
    return {f"[{address}]" if address.version == 6 else str(address)}


def _host_of(header: str) -> str:
    """A Host header without its port."""
    name, colon, port = header.rpartition(":")
    return (name if colon and port.isdigit() else header).lower()
