"""A real Chromium with small pages: started, proved, kept in, and ended without a trace, whatever happens to it."""

from __future__ import annotations

import asyncio
import http.server
import os
import re
import signal
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from texelgrad.domain import Cause
from texelgrad.processes import session_members, users_of
from worker.browser import Browser, BrowserDied, PageRejected, open_proved
from worker.chromium import Chromium, EnvironmentFault, Recipe, find_chromium
from worker.page_server import POLICY
from worker.profiles import ProfileFolder, profiles_root

# pyppeteer gives websockets a loop, which websockets calls deprecated
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SOFTWARE = Recipe(
    "swiftshader", ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"), True
)
NO_GL = Recipe("no-gl", ("--disable-gpu", "--disable-software-rasterizer"))
GIVES_UP = Recipe("gives-up", ("--version",))
DEADLINE_S = 20.0

PAGE = """
globalThis.texelgradPage = {
  async prove() {
    const gl = new OffscreenCanvas(1, 1).getContext("webgl2");
    if (!gl) throw Object.assign(new Error("no WebGL2 context"), { code: "no_webgl2" });
    const info = gl.getExtension("WEBGL_debug_renderer_info");
    return { webgl2: true, float32: true, software: true, renderer: gl.getParameter(info.UNMASKED_RENDERER_WEBGL) };
  },
  hang: () => new Promise(() => {}),
  spin() { for (;;); },
  nothing() {},
  fail() { throw Object.assign(new Error("as agreed"), { code: "gl_error" }); },
  breaks() { return null.field; },
  async reach() {
    const attempt = (action) => action().then(() => "reached", () => "blocked");
    const answer = (worker) => new Promise((resolve) => {
      worker.onmessage = ({ data }) => resolve(data); worker.onerror = () => resolve("blocked"); });
    const fromWorker = answer(new Worker("worker.js"));
    const blob = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    return {
      blobWorker: await answer(new Worker(blob(await (await fetch("worker.js")).text()))),
      own: await attempt(() => fetch("own")),
      led: await attempt(() => fetch("leads", { mode: "no-cors" })),
      otherSecret: await attempt(() => fetch("/other/")),
      otherPort: await attempt(() => fetch("http://127.0.0.1:OTHER/", { mode: "no-cors" })),
      otherName: await attempt(() => fetch("http://localhost:OTHER/", { mode: "no-cors" })),
      worker: await fromWorker,
    };
  },
  socket: () => new Promise((resolve) => { new WebSocket("ws://127.0.0.1:OTHER/").onerror = () => resolve(null); }),
  peers() {
    const frame = document.body.appendChild(document.createElement("iframe"));
    const found = [globalThis, frame.contentWindow].flatMap((w) => Object.getOwnPropertyNames(w).filter((n) => n.endsWith("PeerConnection")));
    return found.join();
  },
  say() {
    console.warn("slow:", 3, null, { a: 1 }, NaN);
    console.log("plain");
    setTimeout(() => { throw new Error("nobody catches this"); });
    return new Promise((resolve) => (new Worker("says.js").onmessage = resolve)).then(() => null);
  },
};
"""
WORKER = """
fetch("http://127.0.0.1:OTHER/", { mode: "no-cors" }).then(() => postMessage("reached"), () => postMessage("blocked"));
"""


SAYS = 'console.error("from a worker", new Error("why").message); console.debug("loud"); postMessage(0);'


class Site(http.server.ThreadingHTTPServer):
    """Serves the test's page below /s/ and remembers every request; without any header that protects it."""

    daemon_threads = True

    def __init__(self, main: str) -> None:
        self.files = {"/s/": "<!doctype html><script type=module src=main.js></script>", "/s/main.js": main}
        self.redirects: dict[str, str] = {}
        self.policy = ""
        self.requests: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/s/"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Site)
        self.server.requests.append(self.path)
        body = self.server.files.get(self.path, "").encode()
        target = self.server.redirects.get(self.path)
        self.send_response(302 if target else 200)
        if target:
            self.send_header("Location", target)
        self.send_header("Content-Type", "text/javascript" if self.path.endswith(".js") else "text/html")
        self.send_header("Content-Length", str(len(body)))
        if self.server.policy:
            self.send_header("Content-Security-Policy", self.server.policy)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def chromium() -> Chromium:
    """The one of this machine."""
    return find_chromium("", "")


@pytest.fixture
def other() -> Generator[Site]:
    """A server that the page must not reach."""
    with Site("") as site:
        yield site
        site.shutdown()


@pytest.fixture
def site(other: Site) -> Generator[Site]:
    """The page's own server."""
    with Site(PAGE.replace("OTHER", str(other.server_port))) as site:
        site.files["/s/worker.js"] = WORKER.replace("OTHER", str(other.server_port))
        site.files["/s/says.js"] = SAYS
        site.redirects["/s/leads"] = f"http://127.0.0.1:{other.server_port}/"
        yield site
        site.shutdown()


@pytest.fixture
def profile() -> Generator[Path]:
    """Where the profile goes; afterwards it must be gone, and nothing may use it."""
    folder = ProfileFolder(profiles_root())
    yield folder.profile
    assert not folder.profile.exists()
    assert folder.remove() == []


def with_browser(
    chromium: Chromium, site: Site, profile: Path, use: Callable[[Browser], Awaitable[None]]
) -> None:
    """Open a proved browser, use it, stop it, and see that nothing of it is left."""

    async def run() -> None:
        browser, proof = await open_proved(chromium, [SOFTWARE], site.url, profile, deadline_s=DEADLINE_S)
        assert proof.device["webgl2"] is True
        assert len(session_members(browser.session_id)) > 1
        try:
            await use(browser)
        finally:
            assert await browser.stop() == []
        assert session_members(browser.session_id) == []

    asyncio.run(run())


def test_calls_into_the_page(chromium: Chromium, site: Site, profile: Path):
    """Values come back, agreed errors carry their code, other errors count as internal."""

    async def use(browser: Browser) -> None:
        assert "SwiftShader" in (await browser.call("prove", deadline_s=5))["renderer"]
        assert await browser.call("nothing", deadline_s=5) is None
        with pytest.raises(PageRejected, match="as agreed") as caught:
            await browser.call("fail", deadline_s=5)
        assert caught.value.code == "gl_error"
        with pytest.raises(PageRejected) as caught:
            await browser.call("breaks", deadline_s=5)
        assert caught.value.code == "internal"

    with_browser(chromium, site, profile, use)


def test_it_yields_with_all_its_processes(chromium: Chromium, site: Site, profile: Path):
    """Also where the kernel shares the cores out by session."""

    async def use(browser: Browser) -> None:
        members = session_members(browser.session_id)
        priorities = {pid: os.getpriority(os.PRIO_PROCESS, pid) for pid in members}
        assert set(priorities.values()) == {os.getpriority(os.PRIO_PROCESS, 0) + 7}, priorities
        groups = [group for pid in members if (group := Path(f"/proc/{pid}/autogroup")).exists()]
        assert {group.read_text().split()[-1] for group in groups} <= {"7"}

    with_browser(replace(chromium, nice=7), site, profile, use)


def test_the_page_reaches_only_its_own_folder(chromium: Chromium, site: Site, other: Site, profile: Path):
    """Interception alone, without any CSP: other paths, ports and names are blocked, for the page and its workers.

    Whatever is intercepted is refused, so its own requests are not: their bodies, checkpoints among them, would pass over CDP.
    """

    async def use(browser: Browser) -> None:
        assert await browser.call("reach", deadline_s=10) == {
            "own": "reached",
            "otherSecret": "blocked",
            "otherPort": "blocked",
            "otherName": "blocked",
            "worker": "blocked",
            "blobWorker": "blocked",
            "led": "blocked",
        }

    with_browser(chromium, site, profile, use)
    assert other.requests == []
    assert "/other/" not in site.requests


@pytest.mark.parametrize(("policy", "requests"), [(POLICY, []), ("", ["/"])])
def test_sockets_are_left_to_the_policy(
    chromium: Chromium, site: Site, other: Site, profile: Path, policy: str, requests: list[str]
):
    """Interception does not see them: without the policy one to another port of this machine would get there."""
    site.policy = policy

    async def use(browser: Browser) -> None:
        await browser.call("socket", deadline_s=DEADLINE_S)
        assert [line for line in browser.last_lines() if "Unrecognized" in line] == []

    with_browser(chromium, site, profile, use)
    assert other.requests == requests


def test_there_are_no_peer_connections(chromium: Chromium, site: Site, profile: Path):
    """Neither in the page nor in a frame of it: over TURN they would reach other ports of this machine whatever the policy."""
    site.policy = ""

    async def use(browser: Browser) -> None:
        assert await browser.call("peers", deadline_s=DEADLINE_S) == ""

    with_browser(chromium, site, profile, use)


def test_the_console_is_heard(chromium: Chromium, site: Site, profile: Path):
    """Of the page and of its workers, errors that nobody caught too; without the page's secret address."""

    async def use(browser: Browser) -> None:
        lines: list[tuple[str, str]] = []
        complete = asyncio.Event()

        def hear(level: str, text: str) -> None:
            lines.append((level, text))
            if len(lines) == 5:
                complete.set()

        browser.on_line = hear
        await browser.call("say", deadline_s=DEADLINE_S)
        await asyncio.wait_for(complete.wait(), DEADLINE_S)
        page = [("warning", "slow: 3 null Object NaN"), ("info", "plain")]
        assert [line for line in lines if line in page] == page
        worker = [("error", "from a worker why"), ("debug", "loud")]
        assert [line for line in lines if line in worker] == worker
        ((level, text),) = [line for line in lines if line not in page + worker]
        assert level == "error"
        assert text.startswith("Uncaught Error: nobody catches this\n")
        assert "main.js:" in text
        assert site.url not in text

    with_browser(chromium, site, profile, use)


@pytest.mark.parametrize("method", ["hang", "spin"])
def test_a_call_without_an_answer_ends_at_its_deadline(
    chromium: Chromium, site: Site, profile: Path, method: str
):
    """Also where the page's only thread is busy for ever."""

    async def use(browser: Browser) -> None:
        with pytest.raises(BrowserDied, match="within 0.5 s"):
            await browser.call(method, deadline_s=0.5)

    with_browser(chromium, site, profile, use)


@pytest.mark.parametrize("kind", ["--type=renderer", ""])
def test_a_death_ends_a_pending_call_at_once(chromium: Chromium, site: Site, profile: Path, kind: str):
    """A killed page or browser ends the call that waits for it, not its deadline in an hour."""

    async def use(browser: Browser) -> None:
        call = asyncio.create_task(browser.call("hang", deadline_s=3600))
        await asyncio.sleep(0.1)
        for pid in _members(browser, kind):
            os.kill(pid, signal.SIGKILL)
        how = "its page crashed" if kind else r"(it was killed by signal 9 \(SIGKILL\)|its page crashed)"
        with pytest.raises(BrowserDied) as caught:
            await call
        assert re.fullmatch(f"Chromium failed to answer Runtime.evaluate: {how}", caught.value.reason)
        assert browser.died.done()

    with_browser(chromium, site, profile, use)


def test_a_killed_browser_is_told_by_its_signal_while_its_children_linger(
    chromium: Chromium, site: Site, profile: Path
):
    """Stopped as they are they hold its stderr, and its connection is closed: what counts is its own exit."""

    async def use(browser: Browser) -> None:
        children = [pid for pid in session_members(browser.session_id) if pid != browser.session_id]
        for pid in children:
            os.kill(pid, signal.SIGSTOP)
        os.kill(browser.session_id, signal.SIGKILL)
        assert await asyncio.wait_for(browser.died, DEADLINE_S) == "it was killed by signal 9 (SIGKILL)"
        assert session_members(browser.session_id)

    with_browser(chromium, site, profile, use)


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        (signal.SIGKILL, "it was killed by signal 9 (SIGKILL)"),
        (signal.SIGRTMIN + 3, f"it was killed by signal {signal.SIGRTMIN + 3}"),
        (0, "it closed the connection"),
    ],
)
def test_a_closed_connection_waits_for_the_exit_behind_it(profile: Path, ending: int, told: str):
    """It closes before the process has ended, and a child goes on holding its stderr; 0: the process lives on."""

    async def run() -> str:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", "sleep 60 & exec sleep 60", stderr=asyncio.subprocess.PIPE, start_new_session=True
        )
        browser = Browser(process, profile)
        try:
            browser._lose()  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.05)
            assert not browser.died.done()
            os.kill(process.pid, ending)
            return await browser.died
        finally:
            assert await browser.stop() == []

    assert asyncio.run(run()) == told


def test_recipes_are_tried_in_order_until_one_proves_itself(chromium: Chromium, site: Site, profile: Path):
    """A Chromium that exits, and one without WebGL, are stopped and passed over."""

    async def run() -> str:
        recipes = [GIVES_UP, NO_GL, SOFTWARE]
        browser, proof = await open_proved(chromium, recipes, site.url, profile, deadline_s=DEADLINE_S)
        assert await browser.stop() == []
        assert proof.chromium == chromium.version
        return proof.recipe

    assert asyncio.run(run()) == "swiftshader"


def _failure(chromium: Chromium, recipes: Sequence[Recipe], url: str, profile: Path) -> EnvironmentFault:
    with pytest.raises(EnvironmentFault) as caught:
        asyncio.run(open_proved(chromium, recipes, url, profile, deadline_s=DEADLINE_S))
    return caught.value


def test_no_webgl_says_what_was_tried(chromium: Chromium, site: Site, profile: Path):
    """The cause is that of the page, the message names each recipe, its answer, and the remedies."""
    fault = _failure(chromium, [GIVES_UP, NO_GL], site.url, profile)
    assert fault.cause == Cause.NO_WEBGL2
    assert "gives-up: Chromium failed to open its debugging port: it exited with status 0" in str(fault)
    assert "no-gl: no WebGL2 context (no_webgl2)" in str(fault)
    assert "libvulkan1" in str(fault)


def test_a_hardware_recipe_that_gives_software_is_refused(chromium: Chromium, site: Site, profile: Path):
    """SwiftShader behind a recipe for GPUs is no proof of a GPU."""
    recipe = Recipe("gpu", SOFTWARE.flags, software=False)
    fault = _failure(chromium, [recipe], site.url, profile)
    assert fault.cause == Cause.NO_RENDERER
    assert "is a software renderer, no GPU" in str(fault)


def test_a_page_that_does_not_start_shows_its_console(chromium: Chromium, profile: Path):
    """A module that fails to load is named, so that a broken engine is not taken for a broken GPU."""
    with Site('import "./missing.css";') as site:
        fault = _failure(chromium, [SOFTWARE], site.url, profile)
        site.shutdown()
    assert "the page did not start" in str(fault)
    assert "missing.css" in str(fault)


def _members(browser: Browser, kind: str) -> list[int]:
    """The browser's processes of a kind; "" is its main process."""
    if not kind:
        return [browser.session_id]
    return [pid for pid in users_of(kind) if pid in session_members(browser.session_id)]
