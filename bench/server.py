"""Serves the bench's page from a loopback port: engine, shader bundle, bench/ with its node_modules, and the task at hand."""

from __future__ import annotations

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from texelgrad.engine import Engine

ROOT = Path(__file__).resolve().parents[1]
_FOLDERS = ("/browser_runtime/", "/bench/")


class BenchServer:
    """A context manager; `task` is what the next page that asks gets."""

    def __init__(self) -> None:
        self.task: dict[str, Any] = {}
        bundle = Engine(ROOT / "browser_runtime", ROOT / "shaders").shader_bundle()
        handler = partial(_Handler, bundle, self)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The page's address, ending in a slash."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(SimpleHTTPRequestHandler):
    # mimetypes reads the machine's tables, which may call .js text/plain: a module is then refused.
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".html": "text/html",
        ".js": "text/javascript",
        ".json": "application/json",
        ".wasm": "application/wasm",
    }

    def __init__(self, bundle: bytes, owner: BenchServer, *arguments: Any) -> None:
        self._bundle = bundle
        self._owner = owner
        super().__init__(*arguments, directory=str(ROOT))

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/":
            self.path = "/bench/page.html"
            super().do_GET()
        elif path == "/shaders/bundle.json":
            self._send_json(self._bundle)
        elif path == "/task":
            self._send_json(json.dumps(self._owner.task).encode())
        elif path.startswith(_FOLDERS) and ".." not in path:
            super().do_GET()
        else:
            self.send_error(404)

    def end_headers(self) -> None:
        # SharedArrayBuffer, and so threads of WebAssembly, need both
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        # as the worker's page server: the page and its workers load the same modules
        self.send_header("Cache-Control", "no-store" if self.path == "/task" else "max-age=3600")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the table clean; a missing file shows up in the page as a failed import."""

    def _send_json(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
