"""Where the engine can't train, it says why: bad data, software renderers, lost contexts, broken shaders, poor browsers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import psutil
import pytest

from .harness import SOFTWARE_GL_FLAGS, BrowserPage, PageError
from .specs import Array, Spec, data_for, mlp
from .static_server import shader_bundle

PAGE = "/tests/kernels/refusals_page.js"
ENGINE = "/tests/kernels/engine_page.js"
SESSION = "/tests/kernels/session_page.js"
LOSS = "softmax_cross_entropy"
X, Y = data_for(20, 4, 3, LOSS)


def refusal(page: BrowserPage, *arguments: Any, module: str = PAGE) -> PageError:
    with pytest.raises(PageError) as caught:
        page.call(module, *arguments)
    return caught.value


# ---- data -----------------------------------------------------------------------------------------------------------


def put(array: Array, index: Any, value: float) -> Array:
    changed = array.astype(np.float32)
    changed[index] = value
    return changed


BAD_DATA: list[tuple[str, Spec, Any, Any, str, str, str]] = [
    # what, spec, x, y, code, field, part of the message: the value, what is legal
    ("nan", {}, put(X, (3, 2), np.nan), Y, "data_invalid", "data.x", "is NaN; legal: finite"),
    ("infinity", {}, put(X, (19, 3), np.inf), Y, "data_invalid", "data.x", "is Infinity; legal: finite"),
    ("beyond float32", {}, X.astype(np.float64) * 1e39, Y, "data_invalid", "data.x", "legal: finite float32"),
    ("label too large", {}, X, put(Y, 7, 3), "data_invalid", "data.y", "is 3; legal: class numbers from 0 to 2"),
    ("label below 0", {}, X, put(Y, 7, -1), "data_invalid", "data.y", "is -1; legal: class numbers from 0 to 2"),
    ("label not whole", {}, X, put(Y, 0, 0.5), "data_invalid", "data.y", "is 0.5; legal: class numbers"),
    ("label NaN", {}, X, put(Y, 0, np.nan), "data_invalid", "data.y", "is NaN"),
    ("no rows", {}, X[:0], Y[:0], "data_invalid", "data.x", "at least one row"),
    ("columns", {}, X[:, :3], Y, "data_invalid", "data.x", r"rows are \[3\]; model.input is \[4\]"),
    ("rows", {}, X, Y[:5], "data_invalid", "data.y", "has 5 rows, data.x has 20"),
    ("outputs", {}, X, np.zeros((20, 2), np.float32), "data_invalid", "data.y", r"needs \[20\] class numbers or \[20, 3\]"),
    ("values", {}, {"shape": [20, 4], "data": [1.0] * 79}, Y, "data_invalid", "data.x", "has 79 values; .* needs 80"),
    ("nothing", {}, None, Y, "data_invalid", "data.x", r"must be \{shape, data\}"),
    ("no probabilities", {}, X, np.full((20, 3), 0.3, np.float32), "data_invalid", "data.y", "row 0 sums to 0.9"),
    ("bce", {"loss": "bce"}, X, np.full((20, 3), 1.5, np.float32), "data_invalid", "data.y", "is 1.5; legal: numbers from 0 to 1"),
    ("mse", {"loss": "mse", "metrics": []}, X, np.full((20, 3), np.inf, np.float32), "data_invalid", "data.y", "is Infinity"),
    ("batch", {"train": {"steps": 1, "batch_size": 21}}, X, Y, "spec_invalid", "train.batch_size", "21 is more than the 20"),
    ("optimizer", {"optimizer": {"type": "lamb"}}, X, Y, "spec_invalid", "optimizer.type", 'one of .*, sgd, not "lamb"'),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD_DATA, ids=lambda case: case[0])
def test_bad_data(browser_page: BrowserPage, case: tuple[str, Spec, Any, Any, str, str, str]):
    """The error names the field, the value, and what is legal."""
    _, changes, x, y, code, field, message = case
    error = refusal(browser_page, "run", mlp((4, 5, 3), LOSS) | changes, x, y, module=ENGINE)
    assert error.name == "EngineError"
    assert (error.properties["code"], error.properties["field"]) == (code, field)
    assert re.search(message, error.message), error.message


CALLS: list[tuple[str, Any, str, str]] = [
    ("predict", X[:, :2], "x", r"rows are \[2\]; model.input is \[4\]"),
    ("predict", {"shape": [2, 4], "data": [1.0] * 7}, "x", "has 7 values"),
    ("predict", None, "x", r"\{shape, data\}"),
    ("evaluate", {"x": X, "y": Y[:3]}, "data.y", "has 3 rows, data.x has 20"),
    ("evaluate", {"x": X, "y": np.eye(3, dtype=np.float32)[Y]}, "data.y", "class numbers"),
    ("evaluate", {"x": X, "y": put(Y, 2, 9)}, "data.y", "is 9; legal: class numbers from 0 to 2"),
    ("evaluate", {"x": put(X, 0, np.nan), "y": Y}, "data.x", "is NaN"),
    ("evaluate", None, "data", r"must be \{x, y\}, .* not null"),
    ("run", {"steps": 0}, "options.steps", "0 is not legal; legal: a positive number"),
]


@pytest.mark.parametrize(("method", "argument", "field", "message"), CALLS)
def test_bad_calls(browser_page: BrowserPage, method: str, argument: Any, field: str, message: str):
    """A session refuses what training would have refused, and is unharmed."""
    outcome = browser_page.call(SESSION, "refused", mlp((4, 5, 3), LOSS), X, Y, (method, argument))
    assert outcome["error"] is not None
    assert outcome["error"]["code"] in ("data_invalid", "spec_invalid")
    assert outcome["error"]["field"] == field
    assert re.search(message, outcome["error"]["message"]), outcome["error"]["message"]
    assert outcome["before"].tobytes() == outcome["after"].tobytes()


THREADS = ["worker", "inline"]
WEIGHT = np.linspace(1, 2, 20).astype(np.float32)
ONE: Spec = {"x": X, "y": Y, "weight": WEIGHT}
TWO: Spec = {"x": {"left": X[:, :3], "right": X[:, 3:]}, "y": Y}
MISCOUNTED: list[tuple[str, Spec, list[str], str, int]] = [
    # method, data, where the source is, field, values a row
    ("compile", ONE, ["x"], "data.x", 4),
    ("compile", ONE, ["y"], "data.y", 1),
    ("compile", ONE, ["weight"], "data.weight", 1),
    ("compile", TWO, ["x", "left"], "data.x.left", 3),
    ("evaluate", ONE, ["x"], "data.x", 4),
    ("evaluate", ONE, ["y"], "data.y", 1),
    ("evaluate", ONE, ["weight"], "data.weight", 1),
    ("predict", ONE, ["x"], "x", 4),
    ("predict", TWO, ["x", "right"], "x.right", 1),
]


def spec_of(data: Spec) -> Spec:
    """A net for either: two inputs are joined first."""
    spec = mlp((4, 5, 3), LOSS)
    if data is ONE:
        return spec
    joined = {"type": "concat", "inputs": ["left", "right"]}
    model = {"input": {"left": [3], "right": [1]}, "layers": [joined, *spec["model"]["layers"]]}
    return spec | {"model": model}


@pytest.mark.parametrize("thread", THREADS)
@pytest.mark.parametrize("more", [-1, 2, -1000])
@pytest.mark.parametrize(("method", "data", "path", "field", "columns"), MISCOUNTED)
def test_sources_give_what_they_are_asked_for(
    browser_page: BrowserPage, method: str, data: Spec, path: list[str], field: str, columns: int, more: int, thread: str
):  # fmt: skip
    """Values that are missing are not 0, and none are dropped: the rows are named, what came, and what is needed."""
    more = max(more, -20 * columns)
    error = refusal(browser_page, "miscounted", spec_of(data), data, method, path, more, {"thread": thread})
    assert (error.properties["code"], error.properties["field"]) == ("data_invalid", field)
    needed = 20 * columns
    assert error.message == (
        f"{field}: {needed + more} values came for rows 0 to 19; needed: {needed}, {columns} a row"
    )


@pytest.mark.parametrize("thread", THREADS)
@pytest.mark.parametrize("key", ["x", "y", "weight"])
def test_a_source_that_never_answers_can_be_aborted(browser_page: BrowserPage, key: str, thread: str):
    """At once; another session and the next compile train as ever."""
    spec = mlp((4, 5, 3), LOSS)
    got = browser_page.call(PAGE, "abortedWhileReading", spec, ONE, key, {"thread": thread})
    assert got["code"] == "aborted"
    beside, after = got["weights"]
    for name, value in beside.items():
        assert after[name].tobytes() == value.tobytes()


def test_an_address_that_never_answers_can_be_aborted(browser_page: BrowserPage):
    """Its request ends, and no texture is left."""
    got = browser_page.call(PAGE, "abortedWhileFetching", mlp((4, 5, 3), LOSS), X, Y, {"maxDrawBuffers": 4})
    assert got["held"] > 0
    assert got == {"code": "aborted", "ended": True, "held": got["held"], "left": 0}


@pytest.mark.parametrize("method", ["compile", "evaluate", "estimate"])
def test_unknown_data_are_refused(browser_page: BrowserPage, method: str):
    """`w` is what data sets of the service call weights of rows; here they would count for nothing."""
    data = {"x": X, "y": Y, "w": WEIGHT}
    error = refusal(browser_page, "unknownData", mlp((4, 5, 3), LOSS), data, method)
    assert (error.properties["code"], error.properties["field"]) == ("data_invalid", "data.w")
    assert error.message == "data.w: is unknown; legal: x, y, weight"


@pytest.mark.parametrize("rows", [2**40, 2**31, 2**26])
def test_what_cannot_fit_is_refused_before_it_is_allocated(browser_page: BrowserPage, rows: int):
    """With the figures, and before the data is read."""
    shapes = {"x": {"shape": [rows, 64]}, "y": {"shape": [rows]}}
    error = refusal(
        browser_page, "estimate", mlp((64, 5, 3), LOSS), shapes, module="/browser_runtime/texelgrad.js"
    )
    assert error.properties["code"] == "too_large"
    assert re.search(r"\d{6}", error.message), error.message


# ---- browsers -------------------------------------------------------------------------------------------------------


def test_software_is_refused_where_it_is_not_allowed():
    """And named in the record where it is."""
    spec = mlp((4, 5, 3), LOSS)
    with BrowserPage(SOFTWARE_GL_FLAGS) as page:
        error = refusal(page, "run", spec, X, Y, {"allowSoftware": False})
        record = page.call(PAGE, "run", spec, X, Y, {"allowSoftware": True})["record"]
    assert error.properties["code"] == "software_refused"
    assert "SwiftShader" in error.message
    assert record["software"] is True
    assert "SwiftShader" in record["renderer"]


def test_no_webgl2(browser_page: BrowserPage):
    """The message says how to start Chromium and what to install."""
    error = refusal(browser_page, "withoutWebgl2", {"maxDrawBuffers": 7})
    assert error.properties["code"] == "no_webgl2"
    assert "--use-angle=swiftshader" in error.message
    assert "libvulkan1" in error.message


def test_float_targets_are_proved_and_not_believed(browser_page: BrowserPage):
    """A driver that renders half floats is found out by what comes back."""
    error = refusal(browser_page, "withHalfFloats", {"maxDrawBuffers": 6})
    assert error.properties["code"] == "no_float_targets"
    assert "not float32" in error.message


def test_without_float_targets_integers_carry_the_bits(browser_page: BrowserPage):
    """Where EXT_color_buffer_float is missing, the same bits come from RGBA32UI textures."""
    spec = mlp((4, 5, 3), LOSS, optimizer="adam")
    got = browser_page.call(PAGE, "withoutFloatTargets", spec, X, Y, {"maxDrawBuffers": 8})
    assert got["format"] == "rgba32ui"
    wanted = browser_page.call(ENGINE, "run", spec, X, Y, {"device": {"maxDrawBuffers": 8}})["weights"]
    for name, value in wanted.items():
        assert got["weights"][name].tobytes() == value.tobytes()


def test_a_lost_context_rejects_and_the_next_compile_gets_another(browser_page: BrowserPage):
    """Training ends with context_lost, at once; nothing of the old context is used again."""
    spec = mlp((4, 5, 3), LOSS, steps=3000)
    got = browser_page.call(PAGE, "loseContext", spec, X, Y, {"maxDrawBuffers": 5})
    assert got["code"] == "context_lost"
    assert got["after"] == "context_lost"
    assert got["contexts"] == 2
    assert got["step"] == 3000


def test_a_dead_gpu_process():
    """The GPU process dies while a Worker trains: context_lost, and the next run works."""
    spec = mlp((4, 5, 3), LOSS, steps=10_000_000)
    with BrowserPage() as page:
        page.call(PAGE, "run", mlp((4, 5, 3), LOSS), X, Y, {"thread": "worker"})
        page.evaluate(
            "(path, ...args) => void (globalThis.outcome = import(path).then((m) => m.run(...args)).catch((e) => e.code))",
            PAGE, spec, {"shape": list(X.shape), "data": X.ravel().tolist()}, {"shape": [20], "data": Y.tolist()},
            {"thread": "worker"},
        )  # fmt: skip
        kill_gpu_process(page)
        assert page.evaluate("() => globalThis.outcome") == "context_lost"
        assert (
            page.call(PAGE, "run", mlp((4, 5, 3), LOSS), X, Y, {"thread": "worker"})["history"][-1]["step"]
            == 10
        )


def kill_gpu_process(page: BrowserPage) -> None:
    for process in psutil.Process(page.process_id).children(recursive=True):
        if "--type=gpu-process" in process.cmdline():
            process.kill()
            return
    raise AssertionError("no GPU process")


def test_a_page_without_isolation_trains(browser_page: BrowserPage):
    """Without COOP and COEP there is no SharedArrayBuffer; the same bits all the same."""
    spec = mlp((4, 5, 3), LOSS)
    with BrowserPage(isolated=False) as page:
        got = page.call(PAGE, "run", spec, X, Y, {})
        assert got["isolated"] is False
        bare = page.call(ENGINE, "run", spec, X, Y)["weights"]
    wanted = browser_page.call(ENGINE, "run", spec, X, Y)["weights"]
    for name, value in wanted.items():
        assert bare[name].tobytes() == value.tobytes()


# ---- shaders --------------------------------------------------------------------------------------------------------


def broken(page: BrowserPage, file: str, old: str, new: str) -> PageError:
    edits = [{"file": file, "from": old, "to": new}]
    error = refusal(page, "withEditedShaders", mlp((4, 5, 3), LOSS, activation="tanh"), X, Y, edits)
    assert error.properties["code"] == "shader_error"
    return error


def line_of(file: str, text: str) -> int:
    """The line of a text in a shader, counted from 1."""
    source = shader_bundle()[file]
    return source[: source.index(text)].count("\n") + 1


def test_a_broken_shader_names_file_line_and_place(browser_page: BrowserPage):
    """In a kernel and in an included file, with a caret under the token."""
    for file, old, token in (
        ("affine.frag.glsl", "vec4 total[ROWS];", "vec5"),
        ("lib/math.glsl", "float e = tg_expm1(-2. * abs(x));", "tg_nothing"),
    ):
        new = old.replace("vec4", token).replace("tg_expm1", token)
        head, source, caret = broken(browser_page, file, old, new).message.split("\n")
        assert head.startswith(f"shaders/{file}:{line_of(file, old)}: '{token}'")
        assert source.strip() == new
        assert source[caret.index("^") :].startswith(token)


def test_includes_that_do_not_work(browser_page: BrowserPage):
    """A missing file and a cycle are named."""
    include = '#include "lib/math.glsl"'
    error = broken(browser_page, "lib/curves.glsl", include, '#include "lib/maths.glsl"')
    assert "lib/maths.glsl, included by lib/curves.glsl" in error.message
    error = broken(
        browser_page, "lib/math.glsl", "float tg_nan()", '#include "lib/activation.glsl"\nfloat tg_nan()'
    )
    assert "cycle: " in error.message
    assert "lib/math.glsl -> lib/activation.glsl" in error.message


@pytest.mark.parametrize("address", ["/shaders/none.json", "http://127.0.0.1:9/bundle.json"])
def test_a_bundle_that_is_not_there(browser_page: BrowserPage, address: str):
    """The address is named, and what became of it."""
    error = refusal(browser_page, "withShaderUrl", address)
    assert error.properties["code"] == "shader_error"
    assert address in error.message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text/html,hello", "is no JSON"),
        ("application/json,[1,2]", r"is \[1,2\]; needed: the text of each shader by its path"),
        ("application/json,{}", "no shader lib/"),
    ],
)
def test_a_bundle_that_is_none(browser_page: BrowserPage, content: str, message: str):
    """What a server may answer instead: a page of its own, another file, one of another version."""
    shader_url = f"data:{content}"
    error = refusal(browser_page, "run", mlp((4, 5, 3), LOSS), X, Y, {"shaderUrl": shader_url})
    assert error.properties["code"] == "shader_error"
    assert re.search(message, error.message), error.message
