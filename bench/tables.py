"""What a run found, as run.py writes it, as a heading, a Markdown table and plots. Pure functions; runs nothing."""

from __future__ import annotations

from statistics import median
from typing import Any

from bench import plot
from bench.summary import Measurement, Row, summarize
from bench.text import markdown, significant
from bench.workloads import growth

Results = dict[str, Any]  # {"about", and what the kind of run found}

_COMPARISON: str = (
    "workload|contender|ms a step|spread|x ours|first step, ms|again, ms|draws|calls|page CPU, ms|GPU process CPU, ms|"
    "MB held|loss off by"
)
_SOAK: str = "steps|ms a step|textures|texture MB|JS heap MB|page MB|GPU process MB"


def heading(results: Results) -> str:
    """Renderer, browser and machine in a few lines: without them a figure is worth nothing."""
    about = results["about"]
    device = about["device"]
    commit = about["commit"] or "unknown"
    return "\n".join(
        [
            f"{device['renderer']}, WebGPU: {device['webgpu'] or 'none'}",
            f"Chromium {about['chromium']} `{' '.join(about['flags'])}`",
            f"{about['cpus']} CPUs, load {about['load'][0]:.1f}, {about['date'][:10]}, commit {commit}",
        ]
    )


def table(results: Results) -> str:
    """The run's table."""
    return {"compare": _comparison, "growth": _growth, "telemetry": _telemetry, "soak": _soak}[what(results)](
        results
    )


def what(results: Results) -> str:
    """The kind of the run: compare, growth, telemetry or soak."""
    return results["about"]["options"]["what"]


def plots(results: Results) -> dict[str, str]:
    """SVGs by name; none for a run whose table says it all."""
    title = f"{results['about']['device']['renderer']}, {results['about']['date'][:10]}"
    if what(results) == "compare":
        return {"compare": plot.bars(_rows(results), title)}
    if what(results) != "growth":
        return {}
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for axis, value, row in _sizes(results):
        if row.ms_per_step is not None:
            curves.setdefault(axis, {}).setdefault(row.contender, []).append((value, row.ms_per_step))
    return {f"growth-{axis}": plot.lines(curve, title, axis) for axis, curve in curves.items()}


def _rows(results: Results) -> list[Row]:
    return summarize([Measurement(**m) for m in results["measurements"]])


def _comparison(results: Results) -> str:
    lines = [_COMPARISON.split("|")]
    for row in _rows(results):
        count = results["counts"].get(f"{row.workload} {row.contender}", {})
        peak = count.get("peakBytes")
        lines.append(
            [
                row.workload,
                row.contender,
                _time_or_why(row),
                _percent(row.spread),
                significant(row.times_ours),
                significant(row.first_step_ms),
                significant(row.warm_first_step_ms),
                significant(count.get("drawsPerStep")),
                significant(count.get("callsPerStep")),
                significant(row.page_cpu_ms),
                significant(row.gpu_cpu_ms),
                significant(peak / 1e6 if peak else None),
                f"{row.loss_error:.1e}" if row.loss_error is not None else "",
            ]
        )
    return markdown(lines, names=2)


def _growth(results: Results) -> str:
    lines = [["size", "contender", "value", "ms a step", "spread", "ms over value"]]
    for axis, value, row in _sizes(results):
        share = row.ms_per_step / value if row.ms_per_step is not None else None
        lines.append(
            [axis, row.contender, str(value), _time_or_why(row), _percent(row.spread), significant(share)]
        )
    return markdown(lines, names=2)


def _sizes(results: Results) -> list[tuple[str, int, Row]]:
    """The rows with the size that they vary and its value."""
    sizes = {w["name"]: (axis, value) for axis, sweep in growth().items() for value, w in sweep}
    return [(*sizes[row.workload], row) for row in _rows(results)]


def _telemetry(results: Results) -> str:
    lines = [["workload", "losses read, ms a step", "not read", "costs"]]
    for workload, found in results["telemetry"].items():
        read, unread = found["read"], found["unread"]
        costs = median(one / other for one, other in zip(read, unread, strict=True)) - 1
        lines.append([workload, significant(median(read)), significant(median(unread)), f"{costs:+.1%}"])
    return markdown(lines)


def _soak(results: Results) -> str:
    lines = [_SOAK.split("|")]
    for i, piece in enumerate(results["pieces"]):
        bytes_ = [piece["facts"]["peakBytes"], piece["heapBytes"], *piece["resident"].values()]
        lines.append(
            [
                f"{(i + 1) * results['pieceSteps']:,}",
                significant(piece["msPerStep"]),
                str(piece["facts"]["textures"]),
                *(significant(value / 1e6 if value is not None else None) for value in bytes_),
            ]
        )
    return markdown(lines, names=0)


def _time_or_why(row: Row) -> str:
    return significant(row.ms_per_step) if row.ms_per_step is not None else "; ".join(row.errors)[:120]


def _percent(share: float | None) -> str:
    return f"{share:.0%}" if share is not None else ""
