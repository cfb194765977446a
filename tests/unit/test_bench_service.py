"""The service bench: quantiles that occurred, goals, the table, and requests that fail."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from bench.service.figures import Row, quantiles, table
from bench.service.posts import post_job


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


def post_after(failures: int, retry_s: float) -> list[str]:
    """The key of each try at a service that takes no connection so many times."""
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) <= failures:
            raise httpx.ConnectError("refused")
        return httpx.Response(202)

    async def run() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
            await post_job(http, "http://service/", b"{}", retry_s)

    asyncio.run(run())
    return keys


def test_a_broken_connection_is_tried_again_under_the_same_key():
    """The service must not take one job for two."""
    keys = post_after(2, 60.0)
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_a_service_that_is_gone_ends_the_load():
    """Instead of being tried for ever."""
    with pytest.raises(TimeoutError, match="a POST: not within 0 s"):
        post_after(20, 0.0)
