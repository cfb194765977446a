"""Connections after a body that nobody read, such as of a 413: the answer says that they close, and they do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from flask import Flask, Response, request
from werkzeug.exceptions import RequestEntityTooLarge

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def register(app: Flask) -> None:
    """Ask for `Connection: close` wherever some of the request's body is still to come."""

    @app.after_request
    def _close(response: Response) -> Response:  # pyright: ignore[reportUnusedFunction]
        if _is_unread():
            response.headers["Connection"] = "close"
        return response

    app.wsgi_app = _closing(app.wsgi_app)  # pyright: ignore[reportAttributeAccessIssue] - Flask's has names


def _is_unread() -> bool:
    size = request.content_length
    if size is None:  # in chunks: only a read would tell whether more comes, and might wait for it
        return "Transfer-Encoding" in request.headers
    try:
        return request.stream.tell() < size
    except RequestEntityTooLarge:  # found before anything is read, so it is raised again
        return True


def _closing(app: WSGIApplication) -> WSGIApplication:
    """The application for gunicorn, which drops its `Connection` header, says keep-alive, and then closes after 64 KiB unread."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], error: object = None) -> object:
            if ("Connection", "close") in headers:
                # There is no public way; other servers have no such method, and take the header.
                getattr(getattr(start_response, "__self__", None), "force_close", lambda: None)()
            return start_response(status, headers, error)  # pyright: ignore[reportArgumentType, reportCallIssue]

        return app(environ, start)  # pyright: ignore[reportArgumentType]

    return answer
