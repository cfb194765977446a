"""Plots as SVG: bars for the comparison, lines for the growth of cost, both on logarithmic axes. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from bench.summary import OURS, Row
from bench.text import significant

_STYLE = (
    "<style>text{font:12px sans-serif;fill:#333}.h{font-weight:bold}.g{stroke:#ddd}.a{stroke:#999}</style>"
)
_COLORS = ("#d1495b", "#30638e", "#7aa95c", "#edae49", "#8d6b94", "#5b8e7d")


def bars(rows: Sequence[Row], title: str) -> str:
    """A bar of milliseconds a step for each row that has a time, in groups by workload."""
    timed = [(row, row.ms_per_step) for row in rows if row.ms_per_step is not None]
    if not timed:
        return _svg(400, 40, [_text(10, 24, "nothing was measured")])
    low, high = _decades([ms for _, ms in timed])
    left, width, height = 150, 560, 17
    parts = [_text(10, 20, title, "h")]
    y = 40
    scale = width / (high - low)
    bottom = y + sum(height for _ in timed) + 26 * len({row.workload for row, _ in timed})
    for decade in range(low, high + 1):
        x = left + (decade - low) * scale
        parts.append(f'<line class="g" x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(_text(x - 10, bottom + 16, f"{10.0**decade:g}"))
    parts.append(_text(left + width - 60, bottom + 32, "ms a step"))
    workload = ""
    for row, ms in timed:
        if row.workload != workload:
            workload = row.workload
            y += 26
            parts.append(_text(10, y - 6, workload, "h"))
        length = max(1.0, (math.log10(ms) - low) * scale)
        color = _COLORS[0] if row.contender == OURS else _COLORS[1]
        parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{height - 4}" fill="{color}"/>')
        parts.append(_text(20, y + 11, row.contender))
        parts.append(_text(left + length + 5, y + 11, significant(ms)))
        y += height
    return _svg(left + width + 70, bottom + 44, parts)


def lines(curves: Mapping[str, Sequence[tuple[float, float]]], title: str, x_label: str) -> str:
    """Milliseconds a step against a size, a curve a contender; both axes logarithmic."""
    points = [point for curve in curves.values() for point in curve]
    if not points:
        return _svg(400, 40, [_text(10, 24, "nothing was measured")])
    (x_low, x_high), (y_low, y_high) = _decades([x for x, _ in points]), _decades([y for _, y in points])
    left, top, width, height = 70, 56, 460, 300

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + (math.log10(x) - x_low) / (x_high - x_low) * width,
            top + height - (math.log10(y) - y_low) / (y_high - y_low) * height,
        )

    parts = [_text(10, 20, title, "h")]
    for decade in range(x_low, x_high + 1):
        x, y = at(10.0**decade, 10.0**y_low)
        parts.append(f'<line class="g" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(x - 10, y + 16, f"{10.0**decade:g}"))
    for decade in range(y_low, y_high + 1):
        x, y = at(10.0**x_low, 10.0**decade)
        parts.append(f'<line class="g" x1="{x:.1f}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}"/>')
        parts.append(_text(10, y + 4, f"{10.0**decade:g}"))
    parts.append(_text(left + width / 2, top + height + 34, x_label))
    parts.append(_text(10, top - 8, "ms a step"))
    for i, (name, curve) in enumerate(curves.items()):
        color = _COLORS[i % len(_COLORS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in curve))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        dots = (at(*point) for point in curve)
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in dots]
        parts.append(
            f'<rect x="{left + width + 12}" y="{top + 18 * i}" width="10" height="10" fill="{color}"/>'
        )
        parts.append(_text(left + width + 28, top + 10 + 18 * i, name))
    return _svg(left + width + 150, top + height + 48, parts)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values)))
    return low, max(low + 1, math.ceil(math.log10(max(values))))


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{f" class={style!r}" if style else ""}>{escape(text)}</text>'


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    box = (
        f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    )
    ground = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([f"<svg {box}>", _STYLE, ground, *parts, "</svg>", ""])
