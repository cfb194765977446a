"""One running service for all end-to-end tests."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from .stack import ROOT, Stack


@pytest.fixture(scope="session")
def _running() -> Generator[Stack]:
    with Stack() as stack:
        yield stack


@pytest.fixture
def stack(_running: Stack) -> Stack:
    """The service, with a warm worker and nothing left over from another test."""
    _running.settle()
    return _running


@pytest.fixture
def seed_demo() -> dict[str, Any]:
    """The article's net: examples/seed_demo.json."""
    return json.loads((ROOT / "examples" / "seed_demo.json").read_text())


@pytest.fixture
def long_job(seed_demo: dict[str, Any]) -> dict[str, Any]:
    """The seed demo, but for some ten seconds, with a checkpoint every 1,000 steps."""
    return {
        **seed_demo,
        "name": "long",
        "train": {"steps": 20_000, "seed": 3},
        "checkpoint": {"every_steps": 1_000},
        "diagnostics": "none",
    }
