"""A GPU process that dies between a step and a read: whatever is read then is refused, never taken for a result."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psutil
import pytest

from .harness import BrowserPage
from .specs import data_for, mlp

PAGE = "/tests/kernels/context_loss_page.js"
LOSS = "softmax_cross_entropy"
SPEC = mlp((5, 9, 3), LOSS, optimizer="adam", steps=30, batch_size=10) | {
    "data": {"validation": {"fraction": 0.2}}
}
X, Y = data_for(41, 5, 3, LOSS)
READS = (
    "checkpoint",
    "getWeights",
    "weightsFile",
    "predict",
    "evaluate",
    "validation",
    "telemetry",
    "diagnose",
    "rows",
)


def read_after(page: BrowserPage, read: str, loss: str, **options: Any) -> dict[str, Any]:
    """Three steps, the loss, the read; see context_loss_page.js."""
    return page.call(PAGE, "readAfterLoss", SPEC, X, Y, {"read": read, "loss": loss, **options})


@pytest.mark.parametrize("read", READS)
def test_zeros_of_a_dead_process_are_refused(browser_page: BrowserPage, read: str):
    """Although WebGL reports neither an error nor a loss; without the loss the same read succeeds."""
    alive = read_after(browser_page, read, "none")
    assert alive["code"] is None
    assert (alive["points"] > 0) == (read == "telemetry")
    assert read_after(browser_page, read, "zeros") == {"code": "context_lost", "points": 0}


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(read, marks=() if read in {"checkpoint", "telemetry", "compile"} else pytest.mark.full)
        for read in (*READS, "compile")
    ],
)
def test_a_read_right_after_the_process_was_killed(read: str):
    """In the same task, so that the browser could not tell the page yet."""
    with BrowserPage() as page, _killer(lambda: _kill_gpu_process(page)) as url:
        outcome = read_after(page, read, "killed", killUrl=url)
    assert outcome == {"code": "context_lost", "points": 0}


def _kill_gpu_process(page: BrowserPage) -> None:
    """SIGKILL; returns once it is dead."""
    (victim,) = filter(_is_gpu_process, psutil.Process(page.process_id).children(recursive=True))
    victim.kill()
    with suppress(psutil.NoSuchProcess):
        while (
            victim.status() != psutil.STATUS_ZOMBIE
        ):  # its parent, a process of Chromium's, reaps it when it likes
            time.sleep(0.002)


def _is_gpu_process(process: psutil.Process) -> bool:
    try:
        return "--type=gpu-process" in process.cmdline()
    except psutil.NoSuchProcess:  # a zombie too
        return False


@contextmanager
def _killer(kill: Callable[[], None]) -> Generator[str]:
    """The address of a server that kills when it is asked, and answers when that is done."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kill()
            self.send_response(204)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
