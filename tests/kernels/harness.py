"""Calls JavaScript functions in a real Chromium from synchronous tests. Not the worker's browser.

$TEXELGRAD_TEST_CHROMIUM_FLAGS replaces the flags that choose the renderer, which is SwiftShader without it.
The browser is the one that the worker would take: $CHROMIUM, else by the usual names from PATH.
"""

# pyright: reportUnknownLambdaType=false
# (pyppeteer is untyped)

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Awaitable, Coroutine
from pathlib import Path
from typing import Any, Self, TypeVar

import psutil
import pyppeteer

from worker.chromium import find_chromium

from .codec import decode, decode_array, encode, encode_array
from .static_server import StaticServer

__all__ = ["BrowserPage", "PageDied", "PageError", "decode_array", "encode_array"]

SOFTWARE_GL_FLAGS = "--use-angle=swiftshader --enable-unsafe-swiftshader --ignore-gpu-blocklist"
FLAGS = (
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--disable-domain-blocking-for-3d-apis",
    "--disable-gpu-process-crash-limit",
    "--js-flags=--expose-gc",
)
START_DEADLINE_S = 30.0
STOP_DEADLINE_S = 5.0

Result = TypeVar("Result")


class PageError(Exception):
    """A JavaScript function threw. `properties` are the error's own fields, such as `code`."""

    def __init__(self, error: dict[str, Any], console: list[str]) -> None:
        self.name: str = error["name"]
        self.message: str = error["message"]
        self.stack: str = error["stack"]
        self.properties: dict[str, Any] = decode(error["properties"])
        super().__init__("\n".join([f"{self.name}: {self.message}", self.stack, *console]))


class PageDied(Exception):
    """The browser exited, its page crashed, or a deadline passed. The BrowserPage is unusable from here on."""


class BrowserPage:
    """One page in one browser. A context manager; `call` may be used from any one thread at a time."""

    def __init__(self, flags: str | None = None, *, isolated: bool = True) -> None:
        """`flags` replace the GL flags; the default is $TEXELGRAD_TEST_CHROMIUM_FLAGS, else SwiftShader."""
        self._flags = flags or os.environ.get("TEXELGRAD_TEST_CHROMIUM_FLAGS") or SOFTWARE_GL_FLAGS
        self._loop = asyncio.new_event_loop()
        # pyppeteer fails its futures twice when a browser dies; logged at collection time, that is noise anywhere else.
        self._loop.set_exception_handler(
            lambda _, context: self._console.append(f"pyppeteer: {context['message']}")
        )
        self._thread = threading.Thread(target=self._loop.run_forever, name="browser-page", daemon=True)
        self._server = StaticServer(isolated=isolated)
        self.profile: Path | None = None  # deleted by close()
        self._process: subprocess.Popen[bytes] | None = None
        self._page: Any = None
        self._dead: str | None = None
        self._crashed: asyncio.Event = asyncio.Event()
        self._console: deque[str] = deque(maxlen=50)

    @property
    def origin(self) -> str:
        """Where the checkout is served, such as http://127.0.0.1:1234."""
        return self._server.origin

    @property
    def server(self) -> StaticServer:
        """Which serves the checkout."""
        return self._server

    @property
    def process_id(self) -> int:
        """The browser's process, which also leads its process group."""
        assert self._process is not None, "the browser is not running"
        return self._process.pid

    def __enter__(self) -> Self:
        self._server.__enter__()
        self._thread.start()
        try:
            self._launch()
            self._wait(self._connect(), START_DEADLINE_S)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, module_path: str, function_name: str, *arguments: object, timeout_s: float = 120.0) -> Any:
        """Import a module in the page, call one of its functions with JSON values or arrays, await it.

        Args:
            module_path: from the checkout's root, such as "/browser_runtime/nn/random.js".
            function_name: of an export; the function may be async.
            arguments: what JSON can hold, and NumPy arrays, which arrive as `{shape, data}`.
            timeout_s: after it, the browser is given up.

        Returns: the result, typed arrays and `{shape, data}` as NumPy arrays; non-finite numbers are exact.

        Raises:
            PageError: the function threw.
            PageDied: browser or page are gone, or the time is up.
        """
        path = "/" + module_path.lstrip("/")
        answer = json.loads(
            self.evaluate(
                "(path, name, args) => texelgradTest.call(path, name, args)",
                path,
                function_name,
                json.dumps(encode(arguments), allow_nan=False),
                timeout_s=timeout_s,
            )
        )
        if "error" in answer:
            raise PageError(answer["error"], list(self._console))
        return decode(answer["value"])

    def evaluate(self, function: str, *arguments: object, timeout_s: float = 120.0) -> Any:
        """Run a JS function's source in the page; arguments and result are plain JSON."""
        return self._wait(self._page.evaluate(function, *arguments), timeout_s)

    def reload(self) -> None:
        """Open the page afresh: no module, context or worker survives."""
        self._wait(self._open_page(), START_DEADLINE_S)

    def revive(self) -> None:
        """Start another browser if this one is dead, so that one failure is not that of all tests behind it."""
        if self._dead is None:
            return
        self._end_browser()
        self._dead, self._page, self._crashed = None, None, asyncio.Event()
        self._launch()
        self._wait(self._connect(), START_DEADLINE_S)

    def close(self) -> None:
        """Kill the browser's process group, delete its profile, stop the server. Safe to call twice."""
        self._end_browser()
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_cancel_tasks(), self._loop).result(STOP_DEADLINE_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._server.__exit__()

    def _end_browser(self) -> None:
        if self._process is not None:
            _kill_group(self._process)
            self._process = None
        if self.profile is not None:
            shutil.rmtree(self.profile, ignore_errors=True)
            self.profile = None

    def _launch(self) -> None:
        program = str(find_chromium("", "").program)
        self.profile = Path(tempfile.mkdtemp(prefix="texelgrad-test-"))
        command = [
            program,
            *FLAGS,
            *shlex.split(self._flags),
            f"--user-data-dir={self.profile}",
            "about:blank",
        ]
        if "headless-shell" not in Path(program).name:
            command.insert(1, "--headless=new")
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")
        if shutil.which("setpriv"):  # a killed test run must not leave a browser behind
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        with (self.profile / "stderr.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    async def _connect(self) -> None:
        address = await self._devtools_address()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # pyppeteer's use of websockets
            self._browser: Any = await pyppeteer.connect(browserWSEndpoint=address, defaultViewport=None)
        await self._open_page()

    async def _devtools_address(self) -> str:
        assert self.profile is not None, "the browser is not running"
        port_file = self.profile / "DevToolsActivePort"
        while True:
            lines = port_file.read_text().split() if port_file.exists() else []
            if len(lines) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            await asyncio.sleep(0.02)

    async def _open_page(self) -> None:
        if self._page is not None:
            await self._page.close()
        self._page = await self._browser.newPage()
        self._page.on("error", lambda _: self._crashed.set())  # without this, a crash hangs evaluate for ever
        self._page.on(
            "console", lambda message: self._console.append(f"console.{message.type}: {message.text}")
        )
        await self._page.goto(f"{self._server.origin}/tests/kernels/page.html")
        await self._page.waitForFunction("() => globalThis.texelgradTest")

    def _wait(self, work: Coroutine[Any, Any, Result], timeout_s: float) -> Result:
        """Run on the loop's thread, raced against the browser's death and the deadline."""
        if self._dead is not None:
            work.close()
            raise PageDied(self._dead)
        future = asyncio.run_coroutine_threadsafe(self._race(work, timeout_s), self._loop)
        try:
            return future.result()
        except BaseException:
            if not future.done():  # the test's own time is up
                self._dead = "the test ended while the page was at work"
            raise

    async def _race(self, work: Awaitable[Result], timeout_s: float) -> Result:
        task = asyncio.ensure_future(work)
        died = asyncio.ensure_future(self._death())
        try:
            await asyncio.wait({task, died}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if task.done() and task.exception() is not None:
                # a dying browser first breaks its connection, with errors of every kind; leave its death time to show
                await asyncio.wait({died}, timeout=0.5)
            if task.done() and not died.done():
                return task.result()
            self._dead = died.result() if died.done() else f"no answer from the page in {timeout_s} s"
            raise PageDied("\n".join([self._dead, *self._console, self._stderr()]))
        finally:
            died.cancel()
            task.cancel()

    async def _death(self) -> str:
        while True:
            if self._crashed.is_set():
                return "the page crashed"
            if self._process is not None and self._process.poll() is not None:
                return f"the browser exited with status {self._process.returncode}"
            await asyncio.sleep(0.05)

    def _stderr(self) -> str:
        if self.profile is None:
            return ""
        with contextlib.suppress(OSError):
            return (self.profile / "stderr.log").read_text(errors="replace")[-4000:]
        return ""


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM to the whole group, a moment to go, SIGKILL to what is left."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        deadline = time.monotonic() + (1.0 if number == signal.SIGTERM else STOP_DEADLINE_S)
        while time.monotonic() < deadline and _group_lives(process):
            time.sleep(0.02)
    process.wait(STOP_DEADLINE_S)


def _group_lives(process: subprocess.Popen[bytes]) -> bool:
    """Zombies do not count: orphans wait for PID 1, which in a container may never reap them."""
    for member in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getpgid(member.pid) == process.pid and member.status() != psutil.STATUS_ZOMBIE:
                return True
    return False


async def _cancel_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
