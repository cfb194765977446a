"""The service bench's arithmetic: quantiles that occurred, goals, and the table."""

from __future__ import annotations

from bench.service.figures import Row, quantiles, table


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
