"""The demo as a whole: trained, checked in NumPy, left up or gone as it says."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from texelgrad import Client

from .stack import ROOT, wait_until


@pytest.fixture(name="temporary")
def fixture_temporary() -> Generator[Path]:
    """A temporary folder that Chromium can enter, which runs as another user where the tests run as root."""
    folder = Path(tempfile.mkdtemp(prefix="texelgrad-e2e-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def demo(temporary: Path, *options: str) -> str:
    """Run the demo on a free port; what it prints."""
    result = subprocess.run(
        [sys.executable, "scripts/demo.py", "--port=0", *options],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_demo_trains_and_leaves_nothing(temporary: Path):
    """It says that the address it prints is gone, and it is; so is its folder."""
    said = demo(temporary)
    assert re.search(r"held-out images: 9[789]\.\d\d% accurate", said)
    assert "stops now" in said
    assert list(temporary.glob("texelgrad-demo-*")) == []


def test_a_kept_demo_stays_where_it_says(temporary: Path):
    """Another run uses the service that is up; its process, named, stops it; its data stay."""
    said = [demo(temporary, "--keep", f"--data-dir={temporary / 'kept'}") for _ in range(2)]
    pids = {int(line) for text in said for line in re.findall(r"stop it with: kill (\d+)", text)}
    assert len(pids) == 1
    (pid,) = pids
    try:
        address = re.search(r"dashboard +(http://\S+?/)runs/", said[1])
        assert address
        with Client(address[1]) as client:
            assert [job["name"] for job in client.jobs()] == ["digits", "digits"]
        assert f"`texelgrad serve --data-dir {temporary / 'kept'}` goes on there" in said[1]
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie", "the end")
    assert (temporary / "kept/texelgrad.db").is_file()
