"""Loopback HTTP between one page and one attempt, as docs/page-protocol.md says. Keeps nothing itself."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from flask import Flask, Request, Response, abort, request, send_from_directory
from werkzeug.exceptions import RequestedRangeNotSatisfiable
from werkzeug.serving import WSGIRequestHandler, make_server

from texelgrad.engine import Engine
from texelgrad.errors import Fenced, Invalid
from worker.port import AttemptPort, Metrics

_log = logging.getLogger(__name__)
_POLL_S = 0.05  # how late a stop is noticed
_MAX_JSON_BYTES = 64 << 20
_MAX_METRICS_BYTES = 64 << 20

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content security policy of the page and its workers. WebSockets it alone stops: interception does not see them."""

_HEADERS = {
    # SharedArrayBuffer needs both; the worker's scripts need them as much as the page
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class PageServer:
    """Serves the page of one attempt from a thread of its own. A context manager."""

    def __init__(self, engine: Engine, port: AttemptPort) -> None:
        """`port` is asked from the server's threads."""
        self.secret = secrets.token_urlsafe(32)
        self._server = make_server(
            "127.0.0.1", 0, make_app(engine, port, self.secret), threaded=True, request_handler=_Handler
        )
        self._server.daemon_threads = True  # pyright: ignore[reportAttributeAccessIssue]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="page-server", daemon=True
        )

    @property
    def url(self) -> str:
        """The page's address, ending in a slash."""
        return f"http://127.0.0.1:{self._server.server_port}/{self.secret}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def make_app(engine: Engine, port: AttemptPort, secret: str) -> Flask:
    """The WSGI application; every route lies below the secret."""
    app = Flask(__name__, static_folder=None)
    page = _page(engine).encode()
    shaders = engine.shader_bundle()

    def route(path: str, method: str = "GET") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return app.route(f"/{secret}/{path}", methods=[method])

    @app.after_request
    def _harden(response: Response) -> Response:
        response.headers.update(_HEADERS)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    @app.errorhandler(Fenced)
    def _fenced(error: Fenced) -> tuple[dict[str, str], int]:
        return {"code": error.code, "message": str(error)}, 409

    @app.errorhandler(Invalid)
    def _invalid(error: Invalid) -> tuple[dict[str, str], int]:
        return {"code": error.code, "message": str(error)}, 400

    @route("")
    def _index() -> Response:
        return Response(page, mimetype="text/html")

    @route("browser_runtime/<path:name>")
    def _module(name: str) -> Response:
        # module and worker load the same files: once is enough
        response = send_from_directory(engine.browser_runtime, name, max_age=3600)
        if name.endswith(".js"):
            response.mimetype = "text/javascript"
        return response

    @route("shaders/bundle.json")
    def _shaders() -> Response:
        return Response(shaders, mimetype="application/json")

    @route("job")
    def _job() -> dict[str, Any]:
        return port.job() or abort(404)

    @route("data/<name>")
    def _data(name: str) -> Response:
        try:
            size = port.data_size(name)
        except KeyError:
            abort(404)
        start, end = _range(request, size)
        response = Response(port.open_data(name, start, end), mimetype="application/octet-stream")
        response.content_length = end - start
        response.accept_ranges = "bytes"
        if request.range is not None:
            response.status_code = 206
            response.content_range.set(start, end, size)
        return response

    @route("resume")
    def _resume() -> Response:
        try:
            pieces = port.open_resume()
        except KeyError:
            abort(404)
        return Response(pieces, mimetype="application/octet-stream")

    @route("initial")
    def _initial() -> Response:
        try:
            pieces = port.open_initial()
        except KeyError:
            abort(404)
        return Response(pieces, mimetype="application/octet-stream")

    @route("metrics", "POST")
    def _metrics() -> tuple[str, int]:
        port.metrics(Metrics.decode(_body(_MAX_METRICS_BYTES)))
        return "", 204

    @route("diagnostics", "POST")
    def _diagnostics() -> tuple[str, int]:
        port.diagnostics(_json())
        return "", 204

    @route("checkpoint", "POST")
    def _checkpoint() -> tuple[str, int]:
        step = request.args.get("step", type=int)
        if step is None or step < 0:
            abort(400)
        port.checkpoint(step, request.stream)
        return "", 204

    @route("weights", "POST")
    def _weights() -> tuple[str, int]:
        port.weights(request.stream)
        return "", 204

    @route("predictions", "POST")
    def _predictions() -> tuple[str, int]:
        port.predictions(request.stream)
        return "", 204

    @route("result", "POST")
    def _result() -> tuple[str, int]:
        port.result(_json())
        return "", 204

    @route("failure", "POST")
    def _failure() -> tuple[str, int]:
        port.failure(_json())
        return "", 204

    return app


def _page(engine: Engine) -> str:
    """The page: it preloads every module, so that the import graph costs one round trip."""
    preloads = "".join(
        f'<link rel="modulepreload" href="browser_runtime/{name}">\n' for name in engine.modules()
    )
    return (
        '<!doctype html>\n<meta charset="utf-8">\n<title>texelgrad</title>\n'
        f'{preloads}<script type="module" src="browser_runtime/main.js"></script>\n'
    )


def _range(incoming: Request, size: int) -> tuple[int, int]:
    """The bytes asked for, as [start, end)."""
    if incoming.range is None:
        return 0, size
    asked = incoming.range.range_for_length(size)
    if asked is None:
        raise RequestedRangeNotSatisfiable(length=size)
    return asked


def _body(limit: int) -> bytes:
    if (request.content_length or 0) > limit:
        abort(413)
    return request.get_data(cache=False)


def _json() -> dict[str, Any]:
    if (request.content_length or 0) > _MAX_JSON_BYTES:
        abort(413)
    value = request.get_json(force=True)
    if not isinstance(value, dict):
        abort(400)
    return value


class _Handler(WSGIRequestHandler):
    """Sends small answers at once, where Nagle's algorithm would wait up to 40 ms; requests go to our log."""

    disable_nagle_algorithm = True

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: ARG002 - signature of the base class
        _log.debug(message, *args)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:  # noqa: ARG002
        _log.debug("%s %s", code, self.path.split("/", 2)[-1])  # without the secret
