"""Who may import whom: the arrows of docs/architecture.md, for Python and for the engine's JavaScript.

The checkers take {path: source}, so that each rule is also shown to catch a planted fault.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# ---- Python ------------------------------------------------------------------------------------------------

PYTHON_FORBIDDEN = {"texelgrad": {"api", "worker"}, "api": {"worker"}, "worker": {"api"}}
DRIVER, DRIVER_OWNER = "pyppeteer", "worker/browser.py"
HEAVY = {"sqlalchemy", "celery", "flask", "redis", "pyppeteer"}


def imported_packages(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, top-level package) of every absolute import, wherever in the file it stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module.partition(".")[0]


def python_faults(files: dict[str, str]) -> list[str]:
    """Name every import that points the wrong way."""
    faults: list[str] = []
    for path, source in files.items():
        owner = path.partition("/")[0]
        for line, package in imported_packages(source):
            if package in PYTHON_FORBIDDEN[owner]:
                faults.append(f"{path}:{line}: {owner} may not import {package}")
            if package == DRIVER and path != DRIVER_OWNER:
                faults.append(f"{path}:{line}: only {DRIVER_OWNER} may import {DRIVER}")
    return faults


def test_python_imports_follow_the_arrows():
    """api and worker never meet; texelgrad knows neither; one file knows the browser driver."""
    files = {
        str(path.relative_to(ROOT)): path.read_text()
        for package in PYTHON_FORBIDDEN
        for path in (ROOT / package).rglob("*.py")
    }
    assert {path.partition("/")[0] for path in files} == set(PYTHON_FORBIDDEN)
    assert python_faults(files) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("texelgrad/db.py", "import api"),
        ("texelgrad/cli.py", "def serve():\n    from worker.supervisor import Supervisor"),
        ("api/app.py", "import worker.tasks as tasks"),
        ("worker/runner.py", "from api import create_app"),
        ("worker/runner.py", "from pyppeteer.launcher import connect"),
        ("api/app.py", "if True:\n    import pyppeteer"),
    ],
)
def test_a_planted_python_fault_is_found(path: str, source: str):
    """The checker sees each forbidden import, also inside functions and with aliases."""
    assert len(python_faults({path: source})) == 1


def test_relative_imports_and_lookalikes_are_no_faults():
    """`.api`, `apis` and comments are not `api`."""
    source = "from .api import x\nimport apis\n# import api\ntext = 'import api'\n"
    assert python_faults({"texelgrad/x.py": source}) == []


@pytest.mark.parametrize("module", ["texelgrad", "texelgrad.client"])
def test_the_client_loads_nothing_of_the_server(module: str):
    """`pip install texelgrad` without [server] must be enough for the client."""
    code = f"import json, sys, {module}; print(json.dumps(sorted(m.partition('.')[0] for m in sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert HEAVY & set(json.loads(done.stdout)) == set()


# ---- JavaScript --------------------------------------------------------------------------------------------

# Layer -> layers below that it may import; every layer may import itself. `backends` get the plan as data.
JAVASCRIPT_ARROWS: dict[str, set[str]] = {
    "main.js": {
        "texelgrad.js",
        "train",
        "plan",
        "nn",
        "backends/webgl2",
        "backends/cpu",
        "reference",
        "errors.js",
    },
    "texelgrad.js": {"train", "plan", "nn", "backends/webgl2", "backends/cpu", "reference", "errors.js"},
    "train": {"plan", "nn", "backends/webgl2", "backends/cpu", "reference", "errors.js"},
    "plan": {"nn", "errors.js"},
    "nn": {"errors.js"},
    "backends/webgl2": {"errors.js"},
    "backends/cpu": {"errors.js"},
    "reference": set(),
    "errors.js": set(),
}
# Comments and strings in one pass, so that "//" inside a string is no comment and a quote in a comment no string.
_LEXEME = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)""",
    re.DOTALL,
)
_IMPORT = re.compile(
    r"""(?:\bfrom|\bimport)\s*\(?\s*(["'])(?P<module>[^"'\n]+)\1"""
    r"""|\bnew\s+URL\(\s*(["'])(?P<url>[^"'\n]+\.js)\3\s*,\s*import\.meta\.url"""
)
_PAGE_GLOBAL = re.compile(r"(?<![\w.$])(window|document)\b(?!\s*:)")


def without_comments(source: str) -> str:
    """Blank out comments, keeping lines; JSDoc's import("...") types are no arrows."""
    return _LEXEME.sub(lambda m: re.sub(r"[^\n]", " ", m[0]) if m["comment"] else m[0], source)


def without_strings(source: str) -> str:
    """Blank out comments and strings, keeping lines."""
    return _LEXEME.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), source)


def layer_of(path: str) -> str | None:
    """Return the layer of a path below browser_runtime/, the longest name that fits."""
    names = [name for name in JAVASCRIPT_ARROWS if path == name or path.startswith(f"{name}/")]
    return max(names, key=len, default=None)


def javascript_faults(files: dict[str, str]) -> list[str]:
    """Name every import that points the wrong way, leaves the engine or leads nowhere, and every page global."""
    faults: list[str] = []
    for path, source in files.items():
        layer = layer_of(path)
        if layer is None:
            faults.append(f"{path}: belongs to no layer of {', '.join(JAVASCRIPT_ARROWS)}")
            continue
        for match in _IMPORT.finditer(without_comments(source)):
            where = f"{path}:{source.count(chr(10), 0, match.start()) + 1}"
            specifier = match["module"] or match["url"]
            if not specifier.startswith("."):
                faults.append(f"{where}: {specifier} is not a file of the engine")
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), specifier))
            target_layer = layer_of(target)
            if target not in files:
                faults.append(f"{where}: {specifier} does not exist")
            elif target_layer != layer and target_layer not in JAVASCRIPT_ARROWS[layer]:
                faults.append(f"{where}: {layer} may not import {target_layer}")
        if layer != "main.js":
            for match in _PAGE_GLOBAL.finditer(without_strings(source)):
                line = source.count("\n", 0, match.start()) + 1
                faults.append(f"{path}:{line}: only main.js touches `{match[1]}`")
    return faults


def test_javascript_imports_point_down():
    """The engine's layers import only what stands below them; the reference imports nothing."""
    engine = ROOT / "browser_runtime"
    files = {path.relative_to(engine).as_posix(): path.read_text() for path in engine.rglob("*.js")}
    assert {"main.js", "texelgrad.js"} <= set(files)
    assert javascript_faults(files) == []


def loaded(start: str, files: dict[str, str]) -> set[str]:
    """Every module that importing one loads, but for what it imports later."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        imports = re.findall(
            r'^(?:import|export)\b[^;(="]*"([^"]+)"', without_comments(files[path]), re.MULTILINE
        )
        waiting += [posixpath.normpath(posixpath.join(posixpath.dirname(path), to)) for to in imports]
    return found


def test_the_worker_loads_neither_what_plans_nor_the_reference():
    """The first step waits for each of its modules: the page plans, and a precision report loads what it needs."""
    engine = ROOT / "browser_runtime"
    files = {path.relative_to(engine).as_posix(): path.read_text() for path in engine.rglob("*.js")}
    before_a_step = loaded("train/worker.js", files) | loaded("train/session.js", files)
    slow = ("plan/", "reference/", "nn/layers/", "nn/ops/", "nn/spec", "backends/webgl2/kernels/index")
    assert {"train/pipeline.js", "backends/webgl2/executable.js"} <= before_a_step
    assert [path for path in before_a_step if path.startswith(slow)] == []


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("nn/a.js", 'import { x } from "../plan/b.js";', "nn may not import plan"),
        (
            "plan/a.js",
            'import * as gl from "../backends/webgl2/b.js";',
            "plan may not import backends/webgl2",
        ),
        ("backends/webgl2/a.js", 'import x from "../../plan/b.js"', "backends/webgl2 may not import plan"),
        ("backends/cpu/a.js", 'export { x } from "../webgl2/b.js";', "may not import backends/webgl2"),
        ("reference/a.js", 'import "../errors.js";', "reference may not import errors.js"),
        ("reference/a.js", 'await import("../nn/b.js")', "reference may not import nn"),
        ("train/a.js", 'new Worker(new URL("../main.js", import.meta.url))', "train may not import main.js"),
        (
            "train/a.js",
            "import {\n  one,\n  two,\n} from '../texelgrad.js';",
            "train may not import texelgrad.js",
        ),
        ("nn/a.js", 'import "lodash";', "lodash is not a file of the engine"),
        ("nn/a.js", 'import "./missing.js";', "./missing.js does not exist"),
        ("train/a.js", "const w = window.innerWidth;", "only main.js touches `window`"),
        ("util/a.js", "export {};", "belongs to no layer"),
    ],
)
def test_a_planted_javascript_fault_is_found(path: str, source: str, expected: str):
    """The checker sees every form of import, and names the fault."""
    layers = ("plan/b.js", "backends/webgl2/b.js", "nn/b.js", "main.js", "texelgrad.js", "errors.js")
    (fault,) = javascript_faults({**dict.fromkeys(layers, ""), path: source})
    assert expected in fault


def test_comments_strings_and_legal_imports_are_no_faults():
    """Types in JSDoc, text in strings and properties called `window` do not count."""
    source = """
    /** @type {import("../plan/b.js").Plan} the loss over a window */
    import { one } from "./b.js"; // from "../plan/b.js"
    const text = "window // not a comment", pool = { window: 2 }, size = pool.window;
    """
    assert javascript_faults({"nn/a.js": source, "nn/b.js": "", "plan/b.js": ""}) == []
