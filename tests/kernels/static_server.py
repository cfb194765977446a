"""Serves the checkout to the test page from a loopback port, with the headers of the real page server."""

from __future__ import annotations

import json
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
SHADER_SUFFIX = ".glsl"


def shader_bundle(root: Path = ROOT) -> dict[str, str]:
    """Every shader's text by its path below shaders/, as the page server's bundle.json."""
    folder = root / "shaders"
    files = sorted(folder.rglob(f"*{SHADER_SUFFIX}"))
    return {file.relative_to(folder).as_posix(): file.read_text("utf-8") for file in files}


class _Handler(SimpleHTTPRequestHandler):
    # mimetypes reads the machine's tables, which may call .js text/plain: a module is then refused.
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".html": "text/html",
        ".js": "text/javascript",
        ".json": "application/json",
        ".glsl": "text/plain",
        ".wasm": "application/wasm",
    }

    isolated = True  # COOP and COEP are sent, so that the page has SharedArrayBuffer

    def __init__(self, *args: Any, site: StaticServer, **more: Any) -> None:
        self.site = site
        super().__init__(*args, **more)

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        if self.isolated and self.path not in self.site.bare:
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        if self.site.policy and self.path.startswith("/browser_runtime/"):
            self.send_header("Content-Security-Policy", self.site.policy)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def do_GET(self) -> None:
        self.site.asked.append(self.path)
        if self.path in self.site.silent:
            self.site.over.wait()
            return
        if self.site.failing.get(self.path, 0) > 0:
            self.site.failing[self.path] -= 1
            self.send_error(503)
            return
        if self.path != "/shaders/bundle.json":
            super().do_GET()
            return
        body = json.dumps(shader_bundle()).encode("utf-8")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test output clean; a 404 shows up in the page as a failed import."""


class _PlainHandler(_Handler):
    """What a static host sends that knows nothing of COOP and COEP."""

    isolated = False


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A page, or its Worker, may be gone before it has its answer: that is no fault."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class StaticServer:
    """A context manager; `origin` is the address to open."""

    def __init__(self, *, isolated: bool = True) -> None:
        self.asked: list[str] = []  # paths of all requests
        self.failing: dict[str, int] = {}  # path -> how many more requests for it fail
        self.silent: set[str] = set()  # paths that are never answered
        self.over = threading.Event()
        self.bare: set[str] = set()  # paths that are answered without COOP and COEP
        self.policy = ""  # that the engine's files are served with: a Worker's is that of its own file
        kind = _Handler if isolated else _PlainHandler
        handler = partial(kind, site=self, directory=str(ROOT))
        self._server = _Server(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="static-server", daemon=True)
        self.origin = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
