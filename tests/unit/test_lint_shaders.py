"""scripts/lint_shaders.py: the repository is clean, and each planted fault is found at its line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.lint_shaders import BANNED, ROOT, lint

GOOD = """// scale: Y = 2 X
// X [M,N]  ->  Y [M,N]
// Reference: browser_runtime/reference/scale.js
// exp and log may be named in comments
#include "lib/log.glsl"
void main() { float log_total = tg_exp(1.); /* tanh(x)
  pow(x) */ }
"""


def faults(folder: Path, text: str, path: str = "shaders/scale.frag.glsl") -> list[str]:
    reference = folder / "browser_runtime/reference/scale.js"
    reference.parent.mkdir(parents=True, exist_ok=True)
    reference.touch()
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)
    return lint(folder)


def test_the_repository_is_clean():
    """The script finds shaders, and no fault in them."""
    assert list((ROOT / "shaders").rglob("*.glsl"))
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/lint_shaders.py"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("", 0)


def test_comments_and_includes_are_no_faults(tmp_path: Path):
    """Only code is searched."""
    assert faults(tmp_path, GOOD) == []


@pytest.mark.parametrize("word", BANNED)
@pytest.mark.parametrize("path", ["shaders/scale.frag.glsl", "shaders/lib/scale.glsl"])
def test_each_built_in_is_banned_everywhere(tmp_path: Path, word: str, path: str):
    """The fault is named with its file and line."""
    found = faults(tmp_path, GOOD + f"float f(float x) {{\n  return {word}(x);\n}}\n", path)
    assert found == [f"{path}:9: {word} is imprecise or unreliable; use lib/math.glsl"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("// scale: Y", "// other: Y", ':1: the first line must be "// scale: '),
        ("  ->  Y [M,N]", "", ":2: the second line must give the shapes"),
        ("// Reference: browser_runtime/reference/scale.js", "//", ":1: the header has no line"),
        ("reference/scale.js", "reference/none.js", ":3: the reference browser_runtime/reference/none.js does not exist"),
    ],
)  # fmt: skip
def test_a_kernel_needs_its_header(tmp_path: Path, old: str, new: str, expected: str):
    """Name, shapes and an existing reference; files of lib/ need none of it."""
    assert old in GOOD
    (found,) = faults(tmp_path, GOOD.replace(old, new))
    assert found.startswith(f"shaders/scale.frag.glsl{expected}")
    (tmp_path / "shaders/scale.frag.glsl").unlink()
    assert faults(tmp_path, GOOD.replace(old, new), "shaders/lib/scale.glsl") == []


def test_the_exit_status_is_1_for_a_fault(tmp_path: Path):
    """What CI sees."""
    faults(tmp_path, GOOD + "float bad = exp(1.);\n")
    script = tmp_path / "scripts/lint_shaders.py"
    script.parent.mkdir()
    script.write_text((ROOT / "scripts/lint_shaders.py").read_text())
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == "shaders/scale.frag.glsl:8: exp is imprecise or unreliable; use lib/math.glsl\n"
