"""Where the engine's files are found, and what is made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from texelgrad.engine import Engine, find_engine
from texelgrad.errors import Unavailable


def _make(root: Path) -> Engine:
    (root / "browser_runtime" / "nn").mkdir(parents=True)
    (root / "shaders" / "lib").mkdir(parents=True)
    (root / "browser_runtime" / "main.js").write_text("main")
    (root / "browser_runtime" / "nn" / "a.js").write_text("a")
    (root / "browser_runtime" / "nn" / "notes.txt").write_text("not a module")
    (root / "shaders" / "m.frag.glsl").write_text("é")
    (root / "shaders" / "lib" / "math.glsl").write_text("math")
    return Engine(root / "browser_runtime", root / "shaders")


def test_the_first_place_that_holds_an_engine_wins(tmp_path: Path):
    engine = _make(tmp_path / "wheel" / "engine")
    (tmp_path / "site-packages").mkdir()
    assert find_engine((tmp_path / "site-packages", tmp_path / "wheel" / "engine")) == engine


def test_an_engine_that_is_nowhere_names_the_places(tmp_path: Path):
    with pytest.raises(Unavailable, match=str(tmp_path)):
        find_engine((tmp_path,))


def test_the_checkout_is_found():
    assert "texelgrad.js" in find_engine().modules()


def test_modules_and_bundle(tmp_path: Path):
    engine = _make(tmp_path)
    assert engine.modules() == ["main.js", "nn/a.js"]
    assert json.loads(engine.shader_bundle()) == {"lib/math.glsl": "math", "m.frag.glsl": "é"}


def test_the_hash_sees_names_and_contents(tmp_path: Path):
    """A changed byte, a renamed file, a byte moved between files: each gives another hash; other files don't count."""
    engine = _make(tmp_path)
    hashes = [engine.hash()]
    (engine.browser_runtime / "nn" / "notes.txt").write_text("changed")
    assert engine.hash() == hashes[0]
    (engine.shaders / "lib" / "math.glsl").write_text("mathe")
    hashes.append(engine.hash())
    (engine.browser_runtime / "nn" / "a.js").rename(engine.browser_runtime / "nn" / "b.js")
    hashes.append(engine.hash())
    (engine.browser_runtime / "nn" / "b.js").write_text("")
    (engine.browser_runtime / "main.js").write_text("maina")
    hashes.append(engine.hash())
    assert len(set(hashes)) == len(hashes)
