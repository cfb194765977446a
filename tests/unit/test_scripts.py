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


def test_an_export_onto_a_file_is_refused(tmp_path: Path):
    """And the file is left alone."""
    (tmp_path / "file").write_text("mine")
    for target in ("file", "file/below"):
        result = run("scripts/export_engine.py", str(tmp_path / target))
        assert result.returncode == 2
        assert f"can't write the engine into {tmp_path / target}" in result.stderr
        assert "Traceback" not in result.stderr
    assert (tmp_path / "file").read_text() == "mine"
