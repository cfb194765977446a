"""The service bench: quantiles that occurred, goals, the table, and requests that fail."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, cast

import pytest

from bench import commit
from bench.service.figures import Row, machine, quantiles, table
from bench.service.load import Client

ROOT = Path(__file__).parents[2]


def test_quantiles_are_values_that_occurred():
    """Of 200 the 99th percentile is the second largest; of few it is the largest."""
    assert quantiles([float(value) for value in range(200, 0, -1)]) == (101.0, 199.0, 200.0)
    assert quantiles([3.0, 1.0, 2.0]) == (2.0, 3.0, 3.0)


def test_a_goal_is_reached_or_not():
    """At the goal it is; what has none says nothing."""
    assert Row("a", 5.0, "s", 5.0).reached is True
    assert Row("a", 5.1, "s", 5.0).reached is False
    assert Row("a", 5.0, "s").reached is None


def test_the_table_has_a_line_for_each_figure():
    """With what was missed in bold, and what stands besides."""
    lines = table([Row("slow", 512.0, "ms", 200.0, {"p50": 1.25, "jobs": 3}), Row("rows", 12.0, "rows")])
    assert lines.splitlines()[2:] == [
        "| slow | 512 ms | 200 ms | **no** | p50 1.25, jobs 3 |",
        "| rows | 12 rows |  |  |  |",
    ]


def test_figures_say_of_which_machine_and_commit_they_are():
    """The bench's own, and those of the guide, which come from it."""
    assert re.search(r"\d+ cores, commit ([0-9a-f]{40}|unknown)", machine())
    guide = (ROOT / "docs/operations.md").read_text().split("## What the service costs")[1]
    assert re.search(r"two quiet cores .*commit [0-9a-f]{7}", guide)


def test_without_git_the_commit_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """No repository around the files, nor the program."""
    monkeypatch.setattr(commit, "ROOT", tmp_path)
    assert commit.measured_commit() is None
    monkeypatch.setenv("PATH", "/nonexistent")
    assert commit.measured_commit() is None


def post_after(failures: int, retry_s: float) -> list[str]:
    """The key of each try at a service that breaks the connection so many times, for one POST and a second one."""
    keys: list[str] = []
    answering: set[asyncio.Task[Any]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering.add(cast("asyncio.Task[Any]", asyncio.current_task()))
        while head := await _head(reader):
            await reader.readexactly(2)
            keys.append(head["idempotency-key"])
            if len(keys) <= failures:
                break
            writer.write(b"HTTP/1.1 202 ACCEPTED\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()
        await writer.wait_closed()

    async def run() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            client = Client(f"http://127.0.0.1:{port}/", b"{}")
            try:
                await client.post(retry_s)
                await client.post(retry_s)
            finally:
                client.close()
                await asyncio.gather(*answering)

    asyncio.run(run())
    return keys


async def _head(reader: asyncio.StreamReader) -> dict[str, str]:
    """The fields of the next request; none at the end."""
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
    except (EOFError, ConnectionError):
        return {}
    assert lines[0] == "POST /v1/jobs HTTP/1.1"
    return {name.lower(): value for name, value in (line.split(": ") for line in lines[1:] if line)}


def test_a_broken_connection_is_tried_again_under_the_same_key():
    """The service must not take one job for two; a job of its own has a key of its own."""
    first, again, at_last, second = post_after(2, 60.0)
    assert first == again == at_last
    assert second != first


def test_a_service_that_is_gone_ends_the_load():
    """Instead of being tried for ever."""
    with pytest.raises(TimeoutError, match="a POST: not within 0 s"):
        post_after(20, 0.0)
