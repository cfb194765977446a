"""A measured figure beside its goal, a table of them, and of what they are."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.commit import measured_commit

_MEASURED = ("api", "browser_runtime", "shaders", "texelgrad", "worker")


@dataclass(frozen=True)
class Row:
    """One figure; `goal` is the most that is wanted, None where it only informs."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def reached(self) -> bool | None:
        """Whether the figure is as good as wanted."""
        return None if self.goal is None else self.value <= self.goal


def quantiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, 99th percentile and the largest, each a value that occurred."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], ordered[-1]


def table(rows: Sequence[Row]) -> str:
    """The figures in Markdown."""
    lines = ["| figure | measured | goal | reached | besides |", "|---|--:|--:|---|---|"]
    for row in rows:
        goal = "" if row.goal is None else f"{row.goal:g} {row.unit}"
        reached = {None: "", True: "yes", False: "**no**"}[row.reached]
        more = ", ".join(f"{name} {_short(value)}" for name, value in row.more.items())
        lines.append(f"| {row.name} | {_short(row.value)} {row.unit} | {goal} | {reached} | {more} |")
    return "\n".join(lines)


def _short(value: Any) -> str:
    return (
        f"{value:.3g}"
        if isinstance(value, float) and abs(value) < 1000
        else f"{value:.0f}"
        if isinstance(value, float)
        else str(value)
    )


def machine() -> str:
    """What figures are worth nothing without: the machine, how busy it is, the commit."""
    commit = measured_commit(*_MEASURED) or "unknown"
    return f"{platform.platform()}, {os.cpu_count()} cores, commit {commit}, load {os.getloadavg()[0]:.1f}"
