"""The page server against a port that keeps everything in memory."""

from __future__ import annotations

import json
import struct
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any

import httpx
import pytest

from texelgrad.engine import Engine
from texelgrad.errors import Fenced
from worker.page_server import PageServer
from worker.port import AttemptPort, Metrics

ARRAY = bytes(range(256)) * 8


class FakePort(AttemptPort):
    """Remembers what was posted; fenced on demand."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, Any]] = []
        self.document: dict[str, Any] | None = None
        self.checkpoint_bytes: bytes | None = None
        self.fenced = False

    def _keep(self, what: str, value: Any) -> None:
        if self.fenced:
            raise Fenced("the attempt has ended")
        self.posts.append((what, value))

    def job(self) -> dict[str, Any] | None:
        return self.document

    def data_size(self, name: str) -> int:
        return len({"x": ARRAY}[name])

    def open_data(self, name: str, start: int, end: int) -> Iterator[bytes]:
        for at in range(start, end, 100):
            yield {"x": ARRAY}[name][at : min(at + 100, end)]

    def open_resume(self) -> Iterator[bytes]:
        if self.checkpoint_bytes is None:
            raise KeyError("resume")
        return iter([self.checkpoint_bytes])

    def open_initial(self) -> Iterator[bytes]:
        if self.checkpoint_bytes is None:
            raise KeyError("initial")
        return iter([self.checkpoint_bytes])

    def metrics(self, points: Metrics) -> None:
        self._keep("metrics", points)

    def diagnostics(self, report: dict[str, Any]) -> None:
        self._keep("diagnostics", report)

    def checkpoint(self, step: int, body: IO[bytes]) -> None:
        self._keep("checkpoint", (step, body.read()))

    def weights(self, body: IO[bytes]) -> None:
        self._keep("weights", body.read())

    def predictions(self, body: IO[bytes]) -> None:
        self._keep("predictions", body.read())

    def result(self, result: dict[str, Any]) -> None:
        self._keep("result", result)

    def failure(self, failure: dict[str, Any]) -> None:
        self._keep("failure", failure)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """An engine of two modules and two shaders."""
    runtime, shaders = tmp_path / "browser_runtime", tmp_path / "shaders"
    (runtime / "plan").mkdir(parents=True)
    (shaders / "lib").mkdir(parents=True)
    (runtime / "main.js").write_text("export {};\n")
    (runtime / "plan" / "plan.js").write_text("export const one = 1;\n")
    (shaders / "matmul.frag.glsl").write_text("// matmul\n")
    (shaders / "lib" / "math.glsl").write_text("// math\n")
    return Engine(runtime, shaders)


@pytest.fixture
def port() -> FakePort:
    """An attempt without a job yet."""
    return FakePort()


@pytest.fixture
def page(engine: Engine, port: FakePort) -> Generator[httpx.Client]:
    """A client whose base address is the page's."""
    with PageServer(engine, port) as server, httpx.Client(base_url=server.url, trust_env=False) as client:
        yield client


def test_page_preloads_every_module(page: httpx.Client) -> None:
    """The page names main.js as its module, and a preload for each module of the engine."""
    html = page.get("").text
    assert '<script type="module" src="browser_runtime/main.js">' in html
    assert '<link rel="modulepreload" href="browser_runtime/plan/plan.js">' in html


@pytest.mark.parametrize("path", ["", "browser_runtime/main.js", "shaders/bundle.json", "data/x", "no/such"])
def test_every_answer_isolates_the_page(page: httpx.Client, path: str) -> None:
    """COOP, COEP and a closed CSP are on every answer, since a worker's script brings its own policy."""
    headers = page.get(path).headers
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "script-src 'self' 'wasm-unsafe-eval';" in policy


def test_engine_files(page: httpx.Client) -> None:
    """Modules come as JavaScript and the shaders as one bundle; nothing outside the folders is served."""
    module = page.get("browser_runtime/plan/plan.js")
    assert module.headers["Content-Type"].startswith("text/javascript")
    assert module.text == "export const one = 1;\n"
    assert page.get("shaders/bundle.json").json() == {
        "matmul.frag.glsl": "// matmul\n",
        "lib/math.glsl": "// math\n",
    }
    assert page.get("browser_runtime/%2e%2e/shaders/matmul.frag.glsl").status_code == 404


def test_wrong_secret_is_not_found(page: httpx.Client) -> None:
    """Another process of this machine that guesses the port learns nothing."""
    root = page.base_url.copy_with(path="/")
    assert httpx.get(root, trust_env=False).status_code == 404
    assert httpx.get(root.join("wrong/job"), trust_env=False).status_code == 404


def test_job_appears_when_the_runner_has_one(page: httpx.Client, port: FakePort) -> None:
    """A spare page sees 404 until its attempt begins."""
    assert page.get("job").status_code == 404
    port.document = {"job_id": "job_1"}
    assert page.get("job").json() == {"job_id": "job_1"}


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=100-", 100, 2048),
        ("bytes=-5", 2043, 2048),
        ("bytes=2000-9999", 2000, 2048),
    ],
)
def test_data_ranges(page: httpx.Client, asked: str, start: int, end: int) -> None:
    """A range gives those bytes and says where they stand."""
    answer = page.get("data/x", headers={"Range": asked})
    assert answer.status_code == 206
    assert answer.content == ARRAY[start:end]
    assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/2048"


def test_data_whole_and_missing(page: httpx.Client) -> None:
    """Without a range the whole array comes; an unknown one is 404, a range beyond the end 416."""
    answer = page.get("data/x")
    assert answer.status_code == 200
    assert answer.content == ARRAY
    assert int(answer.headers["Content-Length"]) == 2048
    assert page.get("data/y").status_code == 404
    assert page.get("data/x", headers={"Range": "bytes=4000-"}).status_code == 416


def test_resume(page: httpx.Client, port: FakePort) -> None:
    """The checkpoint comes as it is; 404 for a run from the start."""
    assert page.get("resume").status_code == 404
    port.checkpoint_bytes = b"checkpoint"
    assert page.get("resume").content == b"checkpoint"


def _frame(header: dict[str, Any], body: bytes) -> bytes:
    encoded = json.dumps(header).encode()
    return struct.pack("<I", len(encoded)) + encoded + body


def test_metrics_frame(page: httpx.Client, port: FakePort) -> None:
    """Steps and values arrive byte for byte, so that NaN and infinities stay exact."""
    steps = struct.pack("<2I", 1, 2)
    values = struct.pack("<4d", 0.5, float("nan"), float("inf"), -0.0)
    header = {"keys": ["loss", "val_loss"], "count": 2, "step": 2, "total_steps": 9}
    assert page.post("metrics", content=_frame(header, steps + values)).status_code == 204
    assert port.posts == [("metrics", Metrics(("loss", "val_loss"), 2, steps, values, 2, 9))]


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\xff\xff\xff\xff",
        _frame({"keys": ["loss"], "count": 1, "step": 1}, bytes(12)),
        _frame({"keys": ["loss"], "count": 2, "step": 1, "total_steps": 2}, bytes(12)),
        _frame({"keys": [], "count": 3, "step": 1, "total_steps": 2}, bytes(12)),
    ],
)
def test_metrics_frame_that_is_none(page: httpx.Client, port: FakePort, frame: bytes) -> None:
    """A frame whose sizes don't add up is refused and nothing of it kept."""
    assert page.post("metrics", content=frame).status_code == 400
    assert port.posts == []


def test_posts_reach_the_port(page: httpx.Client, port: FakePort) -> None:
    """Each POST answers 204 and arrives as what it is."""
    large = bytes(3 << 20)
    assert page.post("diagnostics", json={"float32": True}).status_code == 204
    assert page.post("checkpoint?step=500", content=large).status_code == 204
    assert page.post("weights", content=large).status_code == 204
    assert page.post("result", json={"final": {"step": 3}}).status_code == 204
    assert page.post("failure", json={"code": "gl_error"}).status_code == 204
    assert page.post("checkpoint", content=b"").status_code == 400
    assert port.posts == [
        ("diagnostics", {"float32": True}),
        ("checkpoint", (500, large)),
        ("weights", large),
        ("result", {"final": {"step": 3}}),
        ("failure", {"code": "gl_error"}),
    ]


def test_fenced_attempt_answers_409(page: httpx.Client, port: FakePort) -> None:
    """A page whose attempt was taken away hears of it at its next POST, however large."""
    port.fenced = True
    assert page.post("diagnostics", json={}).status_code == 409
