"""One Chromium from its start to its verified end. The one file that imports pyppeteer, which only connects."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyppeteer  # pyright: ignore[reportMissingTypeStubs]

from texelgrad.domain import Cause
from texelgrad.processes import end_session
from worker.chromium import Chromium, EnvironmentFault, Recipe, browser_environment
from worker.console import Line, console_line, exception_line
from worker.url_patterns import patterns_outside

_log = logging.getLogger(__name__)
_CONTROL_S = 10.0  # for a command that needs no GPU
_EXIT_S = 2.0  # from a connection that broke to the exit that broke it
_POLL_S = 0.01
_KEPT_LINES = 40
_WITHOUT_PEERS = (
    "for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection']) delete globalThis[name];"
)
Result = TypeVar("Result")


class BrowserDied(Exception):
    """Chromium exited, its page crashed, or it did not answer in time. Nothing but `stop` is left to do with it."""

    def __init__(self, reason: str, last_lines: Sequence[str] = ()) -> None:
        """`last_lines` are what Chromium logged before: they may tell why, and are mostly noise."""
        super().__init__(reason + "".join(f"\n  {line}" for line in last_lines))
        self.reason = reason


class PageRejected(Exception):
    """A call into the page threw on purpose."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Proof:
    """What a page has shown that it can do, and how its browser was started."""

    device: dict[str, Any]  # as `texelgradPage.prove()` gives it, docs/page-protocol.md
    recipe: str
    chromium: str
    user: str
    sandbox: bool

    def as_dict(self) -> dict[str, Any]:
        """The proof as it stands in worker rows and run records."""
        return asdict(self)


class Browser:
    """A Chromium in a session of its own with one page, made by `start`; `stop` must follow, whatever happens."""

    def __init__(self, process: asyncio.subprocess.Process, profile: Path) -> None:
        self._process = process
        self._profile = profile
        self._stderr: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
        self.died: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._watchers = [asyncio.create_task(self._drain_stderr()), asyncio.create_task(self._watch_exit())]
        self._client: Any = None  # pyppeteer's CDP session of the page
        self._url = ""  # of the page
        self.on_line: Callable[[str, str], None] = (
            _log_line  # level and text of what the page's console shows
        )

    @property
    def session_id(self) -> int:
        """Session that every process of this browser belongs to."""
        return self._process.pid

    @classmethod
    async def start(cls, chromium: Chromium, recipe: Recipe, profile: Path) -> Browser:
        """Start Chromium on an empty profile folder; `open` comes next."""
        asyncio.get_running_loop().set_exception_handler(_log_orphan)
        _make_profile(profile, chromium)
        process = await asyncio.create_subprocess_exec(
            *chromium.command(recipe, profile),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=browser_environment(profile),
            cwd="/",
            start_new_session=True,
        )
        return cls(process, profile)

    async def open(self, url: str, *, deadline_s: float) -> None:
        """Connect, let the page reach nothing outside `url`'s folder, load it, wait for `texelgradPage`.

        Raises:
            BrowserDied: also when the page did not load.
        """
        endpoint = await self._race(self._endpoint(), deadline_s, "open its debugging port")
        browser = await self._race(
            pyppeteer.connect(browserWSEndpoint=endpoint, defaultViewport=None), _CONTROL_S, "connect"
        )
        page: Any = (await self._race(browser.pages(), _CONTROL_S, "list its pages"))[0]
        self._client = page._client  # noqa: SLF001 - raw CDP has no public name, pyppeteer's wrappers no deadlines
        self._url = url
        self._listen(self._client)
        page.on("workercreated", self._listen_to_worker)
        page.on("error", partial(self._die, "its page crashed"))
        browser.on("disconnected", self._lose)
        self._client.on("Fetch.requestPaused", self._refuse_request)
        # Neither a policy nor interception sees peer connections, which reach any address over TURN.
        await self._send("Page.addScriptToEvaluateOnNewDocument", source=_WITHOUT_PEERS)
        await self._send("Fetch.enable", patterns=[{"urlPattern": p} for p in patterns_outside(url)])
        self._client.on("Log.entryAdded", self._note_entry)
        await self._send("Network.disable")  # its events echo every request's body
        await self._race(page.goto(url, timeout=deadline_s * 1000), deadline_s, "load the page")
        if await self._evaluate("typeof globalThis.texelgradPage", _CONTROL_S) != "object":
            raise BrowserDied("the page did not start", self.last_lines())
        for domain in ("Log", "Performance"):  # pyppeteer enabled them; WebGL's remarks would come in floods
            await self._send(f"{domain}.disable")

    async def call(self, method: str, *, deadline_s: float) -> Any:
        """Await `texelgradPage.<method>()` and return its JSON value.

        Raises:
            PageRejected: the method threw.
            BrowserDied
        """
        answer: dict[str, Any] = await self._evaluate(
            f"Promise.resolve().then(() => texelgradPage.{method}()).then((value) => ({{value}}),"
            " (error) => ({code: error.code ?? 'internal', message: String(error.message ?? error)}))",
            deadline_s,
        )
        if "code" in answer:
            raise PageRejected(answer["code"], answer["message"])
        return answer.get("value")

    async def stop(self) -> list[int]:
        """End every process of the browser's session, then remove the profile. Returns what outlived it: normally []."""
        for task in _tasks_of_pyppeteer():
            task.cancel()
        try:
            left = await asyncio.to_thread(end_session, self.session_id)
            if not left:
                await asyncio.wait(self._watchers, timeout=_CONTROL_S)  # they end with the process
            return left
        finally:
            shutil.rmtree(self._profile, ignore_errors=True)
            for task in self._watchers:
                task.cancel()

    async def _evaluate(self, expression: str, deadline_s: float) -> Any:
        answer = await self._send(
            "Runtime.evaluate", deadline_s, expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserDied(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    async def _send(self, method: str, deadline_s: float = _CONTROL_S, **parameters: Any) -> Any:
        async def answered() -> Any:
            return await self._client.send(
                method, parameters
            )  # raises at once where the connection is closed

        return await self._race(answered(), deadline_s, f"answer {method}")

    async def _race(self, awaitable: Awaitable[Result], deadline_s: float, doing: str) -> Result:
        """Await, but not longer than the browser lives or the deadline allows."""
        task = asyncio.ensure_future(awaitable)
        await asyncio.wait({task, self.died}, timeout=deadline_s, return_when=asyncio.FIRST_COMPLETED)
        if task.done() and not task.cancelled() and not self.died.done():
            try:
                return task.result()
            except Exception as error:  # pyppeteer raises whatever its layers do
                await self._note_exit()  # it may be the echo of one
                if not self.died.done():
                    raise BrowserDied(f"Chromium failed to {doing}: {error}") from error
        task.cancel()
        task.add_done_callback(_retrieve)
        if self.died.done():
            raise BrowserDied(f"Chromium failed to {doing}: {self.died.result()}", self.last_lines())
        raise BrowserDied(f"Chromium failed to {doing} within {deadline_s:g} s", self.last_lines())

    def _refuse_request(self, event: dict[str, Any]) -> None:
        """Stop a request that left the page's own folder."""
        self._note("warning", f"request blocked: {event['request']['url']}")
        refusal = {"requestId": event["requestId"], "errorReason": "BlockedByClient"}
        self._client.send("Fetch.failRequest", refusal).add_done_callback(_retrieve)

    def _listen(self, client: Any) -> None:
        """Hear the console of the page or of one of its workers, instead of pyppeteer, which stumbles over a worker's."""
        lines: dict[str, Callable[[dict[str, Any]], Line]] = {
            "Runtime.consoleAPICalled": console_line,
            "Runtime.exceptionThrown": exception_line,
        }
        for event, line in lines.items():
            client.remove_all_listeners(event)
            client.on(event, partial(self._hear, line))

    def _listen_to_worker(self, worker: Any) -> None:
        self._listen(worker._client)  # noqa: SLF001

    def _hear(self, line: Callable[[dict[str, Any]], Line], event: dict[str, Any]) -> None:
        self._note(*line(event))

    def _note_entry(self, event: dict[str, Any]) -> None:
        """What the browser itself shows on the console while the page loads, such as a module that is missing."""
        entry = event["entry"]
        if entry["level"] == "error":
            self._note("error", entry["text"])

    def _note(self, level: str, text: str) -> None:
        text = text.replace(self._url, "")  # it holds the attempt's secret
        if level == "error":
            self._stderr.append(f"console: {text}")
        self.on_line(level, text)

    async def _endpoint(self) -> str:
        """The web socket address that Chromium writes into its profile when it listens."""
        file = self._profile / "DevToolsActivePort"
        while True:
            with contextlib.suppress(OSError):
                port, _, path = file.read_text().partition("\n")
                if path.strip():
                    return f"ws://127.0.0.1:{int(port)}{path.strip()}"
            await asyncio.sleep(0.01)

    async def _drain_stderr(self) -> None:
        assert self._process.stderr is not None
        with contextlib.suppress(ValueError):  # a line beyond the stream's limit ends it
            async for line in self._process.stderr:
                self._stderr.append(line.decode(errors="replace").rstrip())

    async def _watch_exit(self) -> None:
        """Notice every exit, but perhaps late: before Python 3.13 `wait` also waits for all that hold the process's stderr."""
        self._die(_exit_text(await self._process.wait()))

    async def _note_exit(self) -> None:
        """Give a process that may be ending the time to be reaped, its children or not; do nothing where it lives on."""
        deadline = time.monotonic() + _EXIT_S
        while not self.died.done() and time.monotonic() < deadline:
            if (status := self._process.returncode) is not None:
                self._die(_exit_text(status))
            await asyncio.sleep(_POLL_S)

    def _lose(self, *_event: object) -> None:
        """The connection closed, most often since the process is ending: how it ended says more."""

        async def tell() -> None:
            await self._note_exit()
            self._die("it closed the connection")

        self._watchers.append(asyncio.create_task(tell()))

    def _die(self, reason: str, *_event: object) -> None:
        if not self.died.done():
            self.died.set_result(reason)

    def last_lines(self) -> list[str]:
        """The last lines that Chromium logged, without those that every machine without a desktop shows."""
        usual = ("dbus", "DevTools listening", "vaapi_wrapper", "sandbox_linux.cc")
        lines = [line for line in self._stderr if line and not any(word in line for word in usual)]
        return lines[-5:]


async def open_proved(
    chromium: Chromium, recipes: Sequence[Recipe], url: str, profile: Path, *, deadline_s: float
) -> tuple[Browser, Proof]:
    """Start Chromium by each recipe in turn until one's page proves that it can train.

    Args:
        chromium: from `find_chromium`.
        recipes: from `recipes_for`.
        url: the page's address, ending in a slash.
        profile: folder for the profile; removed with the browser.
        deadline_s: for each recipe.

    Raises:
        EnvironmentFault: none proved itself; says what was tried and what each answered.
    """
    tried: list[str] = []
    cause = Cause.NO_RENDERER
    for recipe in recipes:
        browser = await Browser.start(chromium, recipe, profile)
        proved = False
        try:
            await browser.open(url, deadline_s=deadline_s)
            device: dict[str, Any] = await browser.call("prove", deadline_s=deadline_s)
            if recipe.software or not device["software"]:
                proved = True
                identity = chromium.identity
                return browser, Proof(device, recipe.name, chromium.version, identity.user, identity.sandbox)
            tried.append(f"{recipe.name}: {device['renderer']!r} is a software renderer, no GPU")
        except PageRejected as error:
            tried.append(f"{recipe.name}: {error} ({error.code})")
            if error.code in (Cause.NO_WEBGL2, Cause.NO_FLOAT_TARGETS):
                cause = Cause(error.code)
        except BrowserDied as error:
            tried.append(f"{recipe.name}: {error}")
        finally:
            if not proved:
                await browser.stop()
    raise EnvironmentFault(
        cause,
        f"Chromium {chromium.version} ({chromium.program}) has no renderer that can train. Tried "
        + "; ".join(tried)
        + ". A GPU needs its driver's Vulkan or EGL files (libvulkan1 or libegl1, nvidia_icd.json or 10_nvidia.json; "
        "in containers NVIDIA_DRIVER_CAPABILITIES=compute,graphics,utility); software rendering needs Chromium's "
        "libvk_swiftshader.so and TEXELGRAD_ALLOW_SOFTWARE=true.",
    )


def _exit_text(status: int) -> str:
    """How a process ended; a negative status is the signal that killed it."""
    if status >= 0:
        return f"it exited with status {status}"
    names = {
        number.value: f" ({number.name})" for number in signal.Signals
    }  # few of the real-time signals have one
    return f"it was killed by signal {-status}{names.get(-status, '')}"


def _log_line(level: str, text: str) -> None:
    """Where lines go while the page serves no attempt."""
    _log.log(logging.getLevelNamesMapping()[level.upper()], "page: %s", text)


def _make_profile(profile: Path, chromium: Chromium) -> None:
    profile.mkdir(mode=0o700, parents=True, exist_ok=True)
    if chromium.identity.prefix:
        shutil.chown(profile, chromium.identity.uid, chromium.identity.gid)


def _tasks_of_pyppeteer() -> list[asyncio.Task[Any]]:
    """Tasks that pyppeteer leaves behind; one that never connected spins for ever."""
    folder = str(Path(pyppeteer.__file__).parent)
    return [
        task
        for task in asyncio.all_tasks()
        if (code := getattr(task.get_coro(), "cr_code", None)) and code.co_filename.startswith(folder)
    ]


def _log_orphan(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """pyppeteer fails futures that nobody holds when a connection closes; `died` has told us already."""
    _log.debug("%s: %r", context["message"], context.get("exception"))


def _retrieve(future: asyncio.Future[Any]) -> None:
    """Take a result that nobody waits for, so that asyncio does not complain about it."""
    if not future.cancelled():
        future.exception()
