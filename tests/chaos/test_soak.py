"""Many short jobs, one after the other: memory, file descriptors, processes and temporary files stay as they were."""

from __future__ import annotations

from typing import Any

import psutil
import pytest

from .settled import SETTLE_S, finish
from tests.e2e.stack import Stack

WARM_UP = 5
MEMORY_BYTES = 24 << 20  # all parts together: caches fill, and allocators keep what they had
HANDLES = 24  # pooled connections come and go, with three files each on SQLite; threads with them


def _parts(stack: Stack) -> list[psutil.Process]:
    """What lives as long as the service: not runners and browsers, which serve one attempt each."""
    parts = [process for name in ("api", "keeper", "worker", "redis") for process in stack.part(name)]
    children = [child for name in ("api", "worker") for part in stack.part(name) for child in part.children()]
    return [psutil.Process(stack.process.pid), *parts, *children]


def _measure(stack: Stack) -> dict[str, int]:
    stack.settle(SETTLE_S)
    parts = _parts(stack)
    return {
        "parts": len(parts),
        "bytes": sum(process.memory_info().rss for process in parts),
        "handles": sum(process.num_fds() for process in parts),
        "threads": sum(process.num_threads() for process in parts),
        "files": sum(1 for path in stack.temporary.iterdir() for _ in path.iterdir()),
    }


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("jobs", [30, 300])
def test_short_jobs_leave_nothing(stack: Stack, spec: dict[str, Any], jobs: int):
    """After the first few, that is: a service that runs for months does not grow."""
    short = {**spec, "train": {"steps": 50}, "checkpoint": {}}
    for _ in range(WARM_UP):
        assert finish(stack, stack.client.create_job(short)["id"])["state"] == "succeeded"
    before = _measure(stack)
    ids = [stack.client.create_job(short)["id"] for _ in range(jobs)]
    for job_id in ids:
        job = finish(stack, job_id)
        assert (job["state"], len(job["attempts"])) == ("succeeded", 1)
    after = _measure(stack)
    print(f"{jobs} jobs: {before} -> {after}")  # noqa: T201 - figures for the record
    assert stack.orphans() == []
    assert (after["parts"], after["files"]) == (before["parts"], before["files"])
    assert after["handles"] <= before["handles"] + HANDLES
    assert after["threads"] <= before["threads"] + HANDLES
    assert after["bytes"] <= before["bytes"] + MEMORY_BYTES
