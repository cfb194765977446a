"""How an engine gets its files: from another origin, under a page's policies, and over a connection that fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .harness import BrowserPage
from .specs import Spec, data_for, mlp
from .static_server import StaticServer

PAGE = "/tests/kernels/loading_page.js"
SPEC = mlp((4, 5, 3))
X, Y = data_for(20, 4, 3, "mse")
DATA: Spec = {"x": X, "y": Y}
INLINE = 'or take thread: "inline"'


@pytest.fixture
def page() -> Iterator[BrowserPage]:
    """A page of its own: policies last as long as it, and the modules that it loaded are not loaded again."""
    with BrowserPage() as page:
        yield page


def compile_from(page: BrowserPage, origin: str, **options: Any) -> list[dict[str, Any] | None]:
    """What the first and the second compile said."""
    return page.call(PAGE, "compileFrom", origin, SPEC, DATA, options)


@pytest.mark.parametrize("thread", ["auto", "worker"])
def test_a_worker_of_another_origin(page: BrowserPage, thread: str):
    """Browsers start none: the error says what to serve from where, or which thread to take."""
    with StaticServer() as elsewhere:
        for told in compile_from(page, elsewhere.origin, thread=thread):
            assert told is not None
            assert (told["name"], told["code"], told["field"]) == (
                "EngineError",
                "spec_invalid",
                "options.thread",
            )
            assert (
                f"{elsewhere.origin}/browser_runtime/train/worker.js is not of the page's origin"
                in told["message"]
            )
            assert f"{page.origin}: serve browser_runtime/ from there, {INLINE}" in told["message"]


def test_in_the_pages_thread_the_engine_may_be_of_another_origin(page: BrowserPage):
    """As the error says; its server allows that with CORS."""
    with StaticServer() as elsewhere:
        assert compile_from(page, elsewhere.origin, thread="inline") == [None, None]


def test_trusted_types(page: BrowserPage):
    """An address is no TrustedScriptURL: the error names the policy that makes it one, with which the engine starts."""
    page.call(PAGE, "addPolicy", "require-trusted-types-for 'script'")
    for told in compile_from(page, page.origin):
        assert told is not None
        assert (told["name"], told["code"], told["field"]) == (
            "EngineError",
            "spec_invalid",
            "options.thread",
        )
        assert "let the createScriptURL of a default policy pass this address, " + INLINE in told["message"]
    assert compile_from(page, page.origin, thread="inline") == [None, None]
    page.call(PAGE, "addDefaultPolicy")
    assert compile_from(page, page.origin) == [None, None]


def test_a_page_that_allows_no_worker(page: BrowserPage):
    """Its policy is named."""
    page.call(PAGE, "addPolicy", "worker-src 'none'")
    for told in compile_from(page, page.origin):
        check_not_loaded(told)
    assert compile_from(page, page.origin, thread="inline") == [None, None]


def test_a_worker_without_the_header_of_its_page(page: BrowserPage):
    """A page with Cross-Origin-Embedder-Policy loads none: the header is named."""
    page.server.bare.add("/browser_runtime/train/worker.js")
    for told in compile_from(page, page.origin):
        check_not_loaded(told)
    page.server.bare.clear()
    assert compile_from(page, page.origin) == [None, None]


def check_not_loaded(told: dict[str, Any] | None) -> None:
    """What it may be, as the browser does not say which."""
    assert told is not None
    assert (told["name"], told["code"], told["field"]) == ("EngineError", "internal", "options.thread")
    for part in ("worker.js could not be loaded", "worker-src", "Cross-Origin-Embedder-Policy", INLINE):
        assert part in told["message"]


@pytest.mark.parametrize("thread", ["worker", "inline"])
@pytest.mark.parametrize("module", ["session.js", "pipeline.js"])
def test_modules_that_failed_once_are_loaded_once_more(page: BrowserPage, module: str, thread: str):
    """They are asked for while the context is made, and again by the compile that needs them."""
    path = f"/browser_runtime/train/{module}"
    page.server.failing[path] = 1
    assert compile_from(page, page.origin, thread=thread) == [None, None]
    assert page.server.failing[path] == 0


@pytest.mark.parametrize("thread", ["worker", "inline"])
def test_modules_that_fail_twice_are_told(page: BrowserPage, thread: str):
    """The next compile of the same engine tries again."""
    path = "/browser_runtime/train/session.js"
    page.server.failing[path] = 2
    first, second = compile_from(page, page.origin, thread=thread)
    assert first is not None
    assert (first["name"], first["code"]) == ("EngineError", "internal")
    assert "a module of the engine can't be loaded: " in first["message"]
    assert path in first["message"]
    assert second is None
    assert page.server.failing[path] == 0


def test_the_engines_own_code_in_the_pages_thread(page: BrowserPage):
    """It is loaded once it is wanted; the next compile tries again."""
    path = "/browser_runtime/train/serve.js"
    page.server.failing[path] = 1
    first, second = compile_from(page, page.origin, thread="inline")
    assert first is not None
    assert (first["name"], first["code"]) == ("EngineError", "internal")
    assert "a module of the engine can't be loaded: " in first["message"]
    assert second is None


# ---- ahead of the first call ----------------------------------------------------------------------------------------


def preload_from(
    page: BrowserPage, origin: str, options: Spec, **then: Any
) -> tuple[dict[str, Any] | None, int]:
    """What preload() said, and how many Workers there were."""
    got = page.call(PAGE, "preloadFrom", origin, options, then)
    return got["failure"], got["workers"]


@pytest.mark.parametrize("thread", ["worker", "inline"])
def test_what_was_preloaded_is_not_loaded_again(page: BrowserPage, thread: str):
    """Whoever compiles finds modules, shaders and the Worker there; the engine behind it is the only one."""
    workers = int(thread == "worker")
    assert preload_from(page, page.origin, {"thread": thread}) == (None, workers)
    assert preload_from(page, page.origin, {"thread": thread}) == (None, 0)
    page.server.asked.clear()
    assert preload_from(
        page, page.origin, {"thread": thread}, compile=[SPEC, {"data": DATA, "thread": thread}]
    ) == (None, 0)
    assert page.server.asked == []
    # All of that was released.
    assert preload_from(page, page.origin, {"thread": thread}) == (None, workers)


def test_preloading_for_an_engine_that_is_there(page: BrowserPage):
    """Or that is being made: nothing is loaded."""
    options = {"data": DATA, "device": {"maxDrawBuffers": 4}}
    assert preload_from(page, page.origin, {}, compile=[SPEC, options]) == (None, 1)
    page.call(PAGE, "compileAndKeep", page.origin, SPEC, options)
    assert preload_from(page, page.origin, {}) == (None, 0)


def test_compiling_while_it_preloads(page: BrowserPage):
    """In the same Worker."""
    given = [SPEC, {"data": DATA}]
    assert preload_from(page, page.origin, {}, compile=given) == (None, 1)
    # Another thread, another engine.
    assert preload_from(page, page.origin, {}, compile=[SPEC, {"data": DATA, "thread": "inline"}]) == (
        None,
        1,
    )


def test_released_while_it_preloads(page: BrowserPage):
    """Whoever waits is told; the next one loads again."""
    failure, _ = preload_from(page, page.origin, {}, release=True)
    assert failure is not None
    assert (failure["name"], failure["code"]) == ("EngineError", "disposed")
    assert preload_from(page, page.origin, {}) == (None, 1)


@pytest.mark.parametrize("compiles", [False, True])
@pytest.mark.parametrize("thread", ["worker", "inline"])
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/shaders/bundle.json", "shader_error"),
        ("/browser_runtime/train/session.js", "internal"),
        ("/browser_runtime/train/serve.js", "internal"),
    ],
)
def test_what_could_not_be_preloaded_is_told_and_loaded_later(
    page: BrowserPage, path: str, code: str, thread: str, compiles: bool
):
    """By the next call, of either kind, in a Worker of its own."""
    page.server.failing[path] = 1
    failure, workers = preload_from(page, page.origin, {"thread": thread})
    assert failure is not None
    assert (failure["name"], failure["code"]) == ("EngineError", code)
    assert workers == (thread == "worker")
    if compiles:
        assert compile_from(page, page.origin, thread=thread) == [None, None]
    else:
        assert preload_from(page, page.origin, {"thread": thread}) == (None, int(thread == "worker"))


def test_bad_options_of_preload(page: BrowserPage):
    """The device is chosen by those who make one; other origins start no Worker."""
    failure, _ = preload_from(page, page.origin, {"device": {}})
    assert failure is not None
    assert (failure["code"], failure["field"]) == ("spec_invalid", "options.device")
    assert failure["message"] == "options.device: is unknown; legal: shaderUrl, thread"
    with StaticServer() as elsewhere:
        for _ in range(2):
            failure, _ = preload_from(page, elsewhere.origin, {})
            assert failure is not None
            assert (failure["code"], failure["field"]) == ("spec_invalid", "options.thread")


BUNDLE, WORKER, SERVE = (
    "/shaders/bundle.json",
    "/browser_runtime/train/worker.js",
    "/browser_runtime/train/serve.js",
)


CALLS = [
    ("compile", "release"),
    ("compile", "abort"),
    ("train", "release"),
    ("train", "abort"),
    ("diagnose", "abort"),
    ("probe", "release"),
    ("preload", "release"),
]


@pytest.mark.parametrize(
    ("call", "how", "path", "thread"),
    [
        pytest.param(*each, *where, marks=() if each in quick else pytest.mark.full)
        for where, quick in [
            ((BUNDLE, "worker"), CALLS),
            ((BUNDLE, "inline"), [("compile", "release")]),
            ((WORKER, "worker"), [("train", "abort"), ("probe", "release")]),
            ((SERVE, "inline"), [("train", "abort"), ("preload", "release")]),
        ]
        for each in CALLS
    ],
)
def test_what_never_answers_is_not_waited_for_by_whoever_no_longer_wants_it(
    page: BrowserPage, call: str, how: str, path: str, thread: str
):
    """`release()` and signals end the start of an engine too; no Worker stays, and the next call starts another."""
    page.server.silent.add(path)
    args: dict[str, list[Any]] = {
        "compile": [SPEC, {"data": DATA, "thread": thread}],
        "train": [SPEC, DATA, {"thread": thread}],
        "diagnose": [SPEC, {"data": DATA, "thread": thread}],
        "probe": [{"thread": thread}],
        "preload": [{"thread": thread}],
    }
    got = page.call(PAGE, "endWhileStarting", page.origin, call, args[call], how)
    assert got["code"] == ("aborted" if how == "abort" else "disposed")
    assert got["released"] is None
    assert got["made"] == got["ended"] == (thread == "worker")
    page.server.over.set()  # or the browser keeps the next request for it waiting
    page.server.silent.clear()
    if path != SERVE:  # which the page's own thread still waits for
        assert compile_from(page, page.origin, thread=thread) == [None, None]


def test_preloading_where_an_engine_can_not_be_made(page: BrowserPage):
    """Both calls are told, however early the one in the Worker failed; the next is made anew."""
    page.server.silent.add(BUNDLE)
    got = page.call(PAGE, "preloadWithoutContext", page.origin)
    assert [told["code"] for told in got] == ["no_webgl2", "no_webgl2"]


@pytest.mark.parametrize("first", ["auto", "worker"])
def test_auto_is_what_it_becomes(page: BrowserPage, first: str):
    """A page's Worker, whose code either call finds there."""
    (other,) = {"auto", "worker"} - {first}
    given = [SPEC, {"data": DATA, "thread": other}]
    assert preload_from(page, page.origin, {"thread": first}, compile=given) == (None, 1)


def test_preload_waits_for_the_engine_that_is_being_made(page: BrowserPage):
    """And is told what that is told."""
    page.server.failing[BUNDLE] = 1
    got = page.call(PAGE, "probeAndPreload", page.origin)
    assert [told["code"] for told in got] == ["shader_error", "shader_error"]
