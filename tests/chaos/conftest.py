"""One running service for the disturbances that it survives, the job that they disturb, and what it must come to."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import ROOT, Stack

STEPS = 12_000  # some 5 s on a quiet machine: killed at 700, the job is far from its end
SETTINGS = {"stall_s": "10", "lease_s": "5"}


@pytest.fixture(scope="session")
def spec() -> dict[str, Any]:
    """The seed demo in shuffled batches for some seconds, with a checkpoint every 500 steps."""
    demo = json.loads((ROOT / "examples" / "seed_demo.json").read_text())
    return {
        **demo,
        "name": "chaos",
        "train": {"steps": STEPS, "batch_size": 32, "seed": 3},
        "checkpoint": {"every_steps": 500},
        "diagnostics": "none",
    }


@pytest.fixture(scope="session")
def _running() -> Generator[Stack]:
    with Stack(SETTINGS) as stack:
        yield stack


@pytest.fixture
def stack(_running: Stack) -> Stack:
    """The service on SQLite and a Redis of its own, with a warm worker and nothing left over."""
    _running.settle(120)
    return _running


@pytest.fixture(scope="session")
def weights(_running: Stack, spec: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file that the job gives where nothing disturbs it: this device gives these bytes each time."""
    job = _running.client.train(spec)
    assert len(job["attempts"]) == 1
    path: Path = tmp_path_factory.mktemp("reference") / "weights"
    return _running.client.download_weights(job["id"], path).read_bytes()
