"""The example of the engine in one's own page, served by the commands that the documents give, in a real browser."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from .stack import ROOT, wait_until
from .test_dashboard import Reader

TRAIN_S = 60.0


@pytest.fixture(params=["README.md", "docs/embedding.md"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[str]:
    """Where the last of a document's commands serves what the others wrote, in a folder that looks like the checkout."""
    for name in ("scripts", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    (block,) = re.findall(
        r"^```sh\n(python scripts/export_engine.*?)^```",
        (ROOT / request.param).read_text(),
        re.MULTILINE | re.DOTALL,
    )
    *before, serve = block.splitlines()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "PYTHONUNBUFFERED": "1"}
    subprocess.run("\n".join(["set -e", *before]), shell=True, cwd=tmp_path, env=env, check=True, timeout=30)
    any_port = [*serve.split(), "0"]
    with subprocess.Popen(
        any_port, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())
            assert found, "the server did not start"
            yield found[0]
        finally:
            server.kill()


def test_the_example_trains(address: str):
    """XOR is learnt, and the visitor sees it."""
    with Reader() as reader:
        reader.open(f"{address}in_page.html")
        wait_until(
            lambda: reader.text("#answers") == "0 1 1 0", "the answers of the trained network", TRAIN_S
        )
        assert float(reader.text("#loss")) < 0.1
