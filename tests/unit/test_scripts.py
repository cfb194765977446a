"""Scripts that a first-time user runs, where something is in their way; tests/e2e runs the demo as a whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a Python script of the checkout."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_demo_that_can_not_start_leaves_its_logs(tmp_path: Path):
    """The folder that it names is still there."""
    result = run("scripts/demo.py", TEXELGRAD_LOG_LEVEL="loud", TMPDIR=str(tmp_path))
    assert result.returncode == 1
    assert "TEXELGRAD_LOG_LEVEL: 'loud'" in result.stdout
    named = re.search(r"Logs are in (\S+);", result.stdout)
    assert named
    assert "TEXELGRAD_LOG_LEVEL" in (Path(named[1]) / "serve.log").read_text()


def test_the_engine_is_exported(tmp_path: Path):
    """Module and shaders, twice into the same folder."""
    for _ in range(2):
        assert run("scripts/export_engine.py", str(tmp_path / "site/texelgrad")).returncode == 0
    assert (tmp_path / "site/texelgrad/browser_runtime/texelgrad.js").is_file()
    assert (tmp_path / "site/texelgrad/shaders/bundle.json").is_file()


def test_the_engine_is_exported_by_a_python_without_packages(tmp_path: Path):
    """As the documents have it, before anything is installed."""
    result = run("-I", "-S", "scripts/export_engine.py", str(tmp_path / "site"))
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "site/shaders/bundle.json").is_file()


def test_an_export_onto_a_file_is_refused(tmp_path: Path):
    """And the file is left alone."""
    (tmp_path / "file").write_text("mine")
    for target in ("file", "file/below"):
        result = run("scripts/export_engine.py", str(tmp_path / target))
        assert result.returncode == 2
        assert f"can't write the engine into {tmp_path / target}" in result.stderr
        assert "Traceback" not in result.stderr
    assert (tmp_path / "file").read_text() == "mine"


def pip_install(folder: Path, exit_code: int) -> subprocess.CompletedProcess[str]:
    """The set-up's pip_install with a Python that warns and ends so."""
    python = folder / "bin/python"
    python.parent.mkdir(exist_ok=True)
    python.write_text(f"#!/bin/sh\necho WARNING: about $4; echo on and on >&2; exit {exit_code}\n")
    python.chmod(0o755)
    script = 'source scripts/lib/setup.sh; VENV="$1"; pip_install thing; say after'
    words = ["bash", "-c", script, "bash", str(folder)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_what_pip_says_is_shown_only_where_it_fails(tmp_path: Path):
    """Its warnings are no news of the demo's; they are kept, and all that it said is there when it fails."""
    fine = pip_install(tmp_path, 0)
    assert (fine.returncode, fine.stdout, fine.stderr) == (0, "", "after\n")
    assert "WARNING: about" in (tmp_path / "pip.log").read_text()
    failed = pip_install(tmp_path, 1)
    assert failed.returncode == 1
    assert "WARNING: about" in failed.stderr
    assert "on and on" in failed.stderr
    assert str(tmp_path / "pip.log") in failed.stderr
    assert "after" not in failed.stderr
